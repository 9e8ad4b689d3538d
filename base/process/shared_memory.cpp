#include "base/process/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace frostpipe {

SharedMemory::~SharedMemory() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : file_(std::move(other.file_)), bytes_(std::exchange(other.bytes_, {})) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

SharedMemory::Address SharedMemory::address() const {
  struct stat status {};
  fstat(file_.number(), &status);
  return {getpid(), file_.number(), static_cast<std::int64_t>(status.st_ino)};
}

std::optional<SharedMemory> SharedMemory::map(Descriptor file, std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.number(), 0);
  if (memory == MAP_FAILED) return std::nullopt;
  SharedMemory mapped;
  mapped.file_ = std::move(file);
  mapped.bytes_ = {static_cast<std::byte*>(memory), bytes};
  return mapped;
}

std::optional<SharedMemory> SharedMemory::make(std::size_t bytes) {
  Descriptor file(memfd_create("frostpipe", MFD_CLOEXEC));
  if (!file.is_open()) return std::nullopt;
  // Reserve the memory now: if it ran out at the first write, a signal would end the process.
  int error = 0;
  do {
    error = posix_fallocate(file.number(), 0, static_cast<off_t>(bytes));
  } while (error == EINTR);
  if (error != 0) return std::nullopt;
  return map(std::move(file), bytes);
}

std::optional<SharedMemory> SharedMemory::open(Address address, std::size_t bytes) {
  Descriptor file(
      ::open(fmt::format("/proc/{}/fd/{}", address.process, address.descriptor).c_str(), O_RDWR | O_CLOEXEC));
  struct stat status {};
  // Where process numbers differ (containers), the path may lead to another file.
  if (!file.is_open() || fstat(file.number(), &status) != 0 || static_cast<std::int64_t>(status.st_ino) != address.file)
    return std::nullopt;
  return open(std::move(file), bytes);
}

std::optional<SharedMemory> SharedMemory::open(Descriptor file, std::size_t bytes) {
  struct stat status {};
  if (fstat(file.number(), &status) != 0 || status.st_size < static_cast<off_t>(bytes)) return std::nullopt;
  return map(std::move(file), bytes);
}

}  // namespace frostpipe
