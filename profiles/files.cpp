#include "profiles/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "profiles/error.h"

namespace frostpipe {

namespace {

/// Closes when it goes out of scope.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }
  int close() { return ::close(std::exchange(number_, -1)); }

 private:
  int number_;
};

[[noreturn]] void fail_write(const std::filesystem::path& path, int error) {
  throw RuntimeFailure(fmt::format("{}: cannot be written: {}", path.string(), std::strerror(error)));
}

/// 0, or the errno of what went wrong.
int write_all(int descriptor, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(descriptor, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

/// /dev/stdout, a pipe: nothing to rename.
void write_in_place(const std::filesystem::path& path, std::string_view content) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.number() < 0) fail_write(path, errno);
  if (const int error = write_all(file.number(), content)) fail_write(path, error);
  if (file.close() != 0) fail_write(path, errno);
}

}  // namespace

std::string read_text_file(const std::filesystem::path& path) {
  const auto fail = [&](int error) {
    throw InvalidInput(fmt::format("{}: cannot be read: {}", path.string(), std::strerror(error)));
  };
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.number() < 0) fail(errno);
  std::string content;
  char buffer[1 << 16];
  while (true) {
    const ssize_t count = ::read(file.number(), buffer, sizeof buffer);
    if (count == 0) return content;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(errno);
    content.append(buffer, static_cast<std::size_t>(count));
  }
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  std::error_code ignored;
  // Through a symbolic link to the file itself, so that the link stays one.
  const auto resolved = std::filesystem::canonical(path, ignored);
  const std::filesystem::path target = ignored ? path : resolved;
  struct stat old {};
  const bool exists = ::stat(target.c_str(), &old) == 0;
  if (exists && S_ISDIR(old.st_mode)) fail_write(path, EISDIR);
  if (exists && !S_ISREG(old.st_mode)) return write_in_place(target, content);

  if (target.has_parent_path()) {
    std::error_code error;
    std::filesystem::create_directories(target.parent_path(), error);
    if (error) fail_write(path, error.value());
  }
  const std::filesystem::path temporary = fmt::format("{}.{}.tmp", target.string(), ::getpid());
  Descriptor file(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, exists ? old.st_mode & 0777 : 0666));
  if (file.number() < 0) fail_write(path, errno);
  int error = write_all(file.number(), content);
  if (error == 0 && ::fsync(file.number()) != 0) error = errno;
  if (file.close() != 0 && error == 0) error = errno;
  if (error == 0 && ::rename(temporary.c_str(), target.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(temporary.c_str());
    fail_write(path, error);
  }
}

std::string fingerprint(std::string_view content) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const unsigned char byte : content) hash = (hash ^ byte) * 1099511628211ULL;
  return fmt::format("{:016x}", hash);
}

}  // namespace frostpipe
