// Oracle: bytes written through one mapping are read through the other.
#include "base/process/shared_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

namespace frostpipe {
namespace {

constexpr std::size_t kBytes = 10'000;

TEST(SharedMemory, AnotherProcessWritesWhatThisOneReads) {
  const std::optional<SharedMemory> memory = SharedMemory::make(kBytes);
  ASSERT_TRUE(memory);
  ASSERT_EQ(memory->bytes().size(), kBytes);
  const SharedMemory::Address address = memory->address();
  const pid_t child = fork();
  if (child == 0) {
    const std::optional<SharedMemory> same = SharedMemory::open(address, kBytes);
    if (same) std::memcpy(same->bytes().data() + kBytes - 6, "hello", 6);
    _exit(same ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_STREQ(reinterpret_cast<const char*>(memory->bytes().data()) + kBytes - 6, "hello");
}

TEST(SharedMemory, StaysWhileAProcessMapsIt) {
  std::optional<SharedMemory> first = SharedMemory::make(kBytes);
  ASSERT_TRUE(first);
  const std::optional<SharedMemory> second = SharedMemory::open(first->address(), kBytes);
  ASSERT_TRUE(second);
  const SharedMemory::Address address = first->address();
  first.reset();
  EXPECT_EQ(second->bytes()[kBytes - 1], std::byte{0});
  EXPECT_FALSE(SharedMemory::open(address, kBytes)) << "it is found only while its maker keeps it";
}

TEST(SharedMemory, StaysMappedWithoutItsFile) {
  std::optional<SharedMemory> memory = SharedMemory::make(kBytes);
  ASSERT_TRUE(memory);
  std::optional<SharedMemory> same = SharedMemory::open(memory->address(), kBytes);
  ASSERT_TRUE(same);
  const SharedMemory::Address address = memory->address();
  memory->close_file();
  same->close_file();
  EXPECT_FALSE(SharedMemory::open(address, kBytes));
  memory->bytes()[7] = std::byte{42};
  EXPECT_EQ(same->bytes()[7], std::byte{42});
}

TEST(SharedMemory, OnlyWhatWasMeantIsMapped) {
  const std::optional<SharedMemory> memory = SharedMemory::make(kBytes);
  ASSERT_TRUE(memory);
  SharedMemory::Address address = memory->address();
  EXPECT_FALSE(SharedMemory::open(address, kBytes + 1)) << "smaller than was asked for";
  ++address.file;
  EXPECT_FALSE(SharedMemory::open(address, kBytes)) << "another file under that descriptor";
  EXPECT_FALSE(SharedMemory::open(SharedMemory::Address{}, kBytes)) << "no memory at all";
}

TEST(SharedMemory, TooMuchIsNoneInsteadOfASignal) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit small{4096, 4096};
    std::signal(SIGXFSZ, SIG_IGN);  // as make_most_of_limits() does
    _exit(setrlimit(RLIMIT_FSIZE, &small) == 0 && !SharedMemory::make(kBytes) && SharedMemory::make(1000) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace frostpipe
