#include "executor/cache/store/activation_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "base/error.h"
#include "tests/support/child_process.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

constexpr std::uint64_t kKey = 7, kOther = 8;
const std::vector<std::uint64_t> kBoth{kKey, kOther};

std::vector<std::byte> pattern(Bytes bytes, int value) {
  return std::vector<std::byte>(static_cast<std::size_t>(bytes), static_cast<std::byte>(value));
}

/// A name that only this process uses, and a folder for the disk part.
class ActivationStoreTest : public test::ScratchFolderTest {
 protected:
  void SetUp() override {
    static int counter = 0;
    name_ = "frostpipe-test-" + std::to_string(getpid()) + "-" + std::to_string(counter++);
  }
  void TearDown() override { ::unlink(("/dev/shm/" + name_).c_str()); }
  ActivationStoreOptions options(Bytes memory_bytes, Bytes disk_bytes, int samples = 4) const {
    return {.entry_bytes = std::vector<Bytes>(samples, 1000),
            .memory_bytes = memory_bytes,
            .disk_bytes = disk_bytes,
            .disk_folder = folder_};
  }
  static std::uint64_t read(const ActivationStore& store, int sample, std::vector<std::byte>& into,
                            const std::vector<std::uint64_t>& keys = kBoth) {
    into.assign(1000, std::byte{0});
    return store.read(sample, keys, into);
  }
  std::string name_;
};

TEST_F(ActivationStoreTest, GivesBackWhatWasWrittenFromMemoryAndFromDisk) {
  // Slots of 1,000 bytes take 1,024: two fit into memory, one on disk, one nowhere.
  const auto store = ActivationStore::create(options(2048, 1500), name_);
  EXPECT_EQ(store->slots_in_memory(), 2);
  EXPECT_EQ(store->slots_on_disk(), 1);
  EXPECT_EQ(store->note(), "");
  std::vector<std::byte> found;
  for (int sample = 0; sample < 4; ++sample) {
    EXPECT_EQ(read(*store, sample, found), 0U) << "nothing is there at first";
    EXPECT_EQ(store->write(sample, kKey, pattern(1000, sample + 1)), sample < 3);
    EXPECT_EQ(store->holds(sample, kKey), sample < 3);
    EXPECT_EQ(read(*store, sample, found), sample < 3 ? kKey : 0U);
    if (sample < 3) {
      EXPECT_EQ(found, pattern(1000, sample + 1));
    }
  }
}

TEST_F(ActivationStoreTest, AnotherKeyIsAMissAndReplacesTheOld) {
  const auto store = ActivationStore::create(options(1 << 20, 0), name_);
  store->write(0, kKey, pattern(1000, 1));
  std::vector<std::byte> found;
  EXPECT_EQ(read(*store, 0, found, {kOther}), 0U);
  EXPECT_FALSE(store->holds(0, kOther));
  store->write(0, kOther, pattern(1000, 2));
  EXPECT_EQ(read(*store, 0, found, {kKey}), 0U);
  EXPECT_EQ(read(*store, 0, found), kOther);
  EXPECT_EQ(found, pattern(1000, 2));
}

TEST_F(ActivationStoreTest, AFlippedByteIsAMiss) {
  const auto store = ActivationStore::create(options(1024, 4096), name_);
  for (const int sample : {0, 1}) store->write(sample, kKey, pattern(1000, 5));
  std::vector<std::byte> found;
  for (const std::string& path : {store->files().shared, store->files().disk}) {
    const int file = ::open(path.c_str(), O_RDWR);
    ASSERT_GE(file, 0);
    std::vector<char> bytes(std::filesystem::file_size(path));
    ASSERT_EQ(pread(file, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    const auto at = std::find(bytes.begin(), bytes.end(), 5) - bytes.begin();
    const char other = 6;
    ASSERT_EQ(pwrite(file, &other, 1, at + 500), 1);
    close(file);
  }
  EXPECT_EQ(read(*store, 0, found), 0U) << "in memory";
  EXPECT_EQ(read(*store, 1, found), 0U) << "on disk";
  EXPECT_TRUE(store->write(0, kKey, pattern(1000, 5)));
  EXPECT_EQ(read(*store, 0, found), kKey);
}

TEST_F(ActivationStoreTest, OtherProcessesReadItAndNothingStaysBehind) {
  const auto store = ActivationStore::create(options(1024, 4096), name_);
  store->write(0, kKey, pattern(1000, 3));
  const auto later = ActivationStore::open(options(1024, 4096), store->files());
  EXPECT_FALSE(std::filesystem::exists("/dev/shm/" + name_));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  store->write(1, kOther, pattern(1000, 4));
  std::vector<std::byte> found;
  EXPECT_EQ(read(*later, 0, found), kKey);
  EXPECT_EQ(read(*later, 1, found), kOther);
  EXPECT_EQ(found, pattern(1000, 4));
  EXPECT_THROW(ActivationStore::open(options(1024, 4096), {"/proc/1/fd/12345", ""}), RuntimeFailure);
}

TEST_F(ActivationStoreTest, NeverShowsHalfAnEntryAndSurvivesAWriterThatDies) {
  const auto store = ActivationStore::create(options(1 << 20, 0), name_);
  const pid_t child = fork();
  if (child == 0) {
    for (int value = 0;; value = 1 - value) store->write(0, kKey, pattern(1000, 10 + value));
  }
  ASSERT_GT(child, 0);
  std::vector<std::byte> found;
  int hits = 0, mixtures = 0;
  for (int i = 0; mixtures == 0 && (i < 200'000 || (hits == 0 && i < 20'000'000)); ++i) {
    if (read(*store, 0, found) == 0) continue;
    ++hits;
    if (found != pattern(1000, 10) && found != pattern(1000, 11)) ++mixtures;
  }
  EXPECT_GT(hits, 0);
  EXPECT_EQ(mixtures, 0);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(store->write(0, kOther, pattern(1000, 12)));
  EXPECT_EQ(read(*store, 0, found), kOther);
}

TEST_F(ActivationStoreTest, ADiskThatIsFullHoldsLessAndSaysSo) {
  EXPECT_TRUE(test::holds_with_files_of(3000, [&] {
    const auto store = ActivationStore::create(options(1024, 1 << 20), name_);
    return store->slots_in_memory() == 1 && store->slots_on_disk() >= 1 && store->slots_on_disk() <= 2 &&
           !store->note().empty() && store->write(1, kKey, pattern(1000, 1)) &&
           !store->write(3, kKey, pattern(1000, 1));
  }));
}

TEST_F(ActivationStoreTest, WithoutAFolderInMemoryTheDiskAloneHoldsEntriesAndItIsSaid) {
  // A file in place of the folder cannot store anything, like a read-only /dev/shm; three of four entries have room on
  // disk.
  ActivationStoreOptions refused = options(4096, 3 * 1024);
  refused.memory_folder = file("no-folder");
  const auto store = ActivationStore::create(refused, name_);
  EXPECT_EQ(store->slots_in_memory(), 0);
  ASSERT_EQ(store->slots_on_disk(), 3);
  EXPECT_EQ(store->note(), refused.memory_folder.string() + ": 0 B of 4.00 KiB could be reserved: Not a directory");
  EXPECT_TRUE(store->write(0, kKey, pattern(1000, 1)));
  std::vector<std::byte> found;
  EXPECT_EQ(read(*ActivationStore::open(refused, store->files()), 0, found), kKey) << "for other processes too";
  EXPECT_EQ(found, pattern(1000, 1));
}

TEST_F(ActivationStoreTest, WithRoomForItsTableAloneEverythingIsAMissAndItIsSaid) {
  // The table takes 64 + 4 x 24 bytes, rounded up.
  EXPECT_TRUE(test::holds_with_files_of(200, [&] {
    const auto store = ActivationStore::create(options(4096, 0), name_);
    return store->slots_in_memory() == 0 && !store->note().empty() && !store->write(0, kKey, pattern(1000, 1));
  }));
}

TEST_F(ActivationStoreTest, WithoutRoomEverythingIsAMiss) {
  const auto store = ActivationStore::create(options(0, 0), name_);
  EXPECT_FALSE(store->write(0, kKey, pattern(1000, 1)));
  std::vector<std::byte> found;
  EXPECT_EQ(read(*store, 0, found), 0U);
}

TEST_F(ActivationStoreTest, AFolderThatIsNoneIsTheUsersError) {
  ActivationStoreOptions wrong = options(0, 4096);
  wrong.disk_folder = folder_ / "nowhere";
  EXPECT_THROW(ActivationStore::create(wrong, name_), InvalidInput);
}

}  // namespace
}  // namespace frostpipe
