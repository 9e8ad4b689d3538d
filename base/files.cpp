#include "base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/git_lfs.h"
#include "base/system_reason.h"

namespace frostpipe {

namespace {

[[noreturn]] void fail_read(const std::filesystem::path& path, int error) {
  throw InvalidInput(fmt::format("{}: cannot be read: {}", path.string(), system_reason(error)));
}

[[noreturn]] void fail_write(const std::filesystem::path& path, int error) {
  throw RuntimeFailure(fmt::format("{}: cannot be written: {}", path.string(), system_reason(error)));
}

/// Reads the whole file if it has at most `most` bytes. Otherwise it stops after more than `most` bytes.
std::string read_up_to(const Descriptor& file, const std::filesystem::path& path, std::size_t most) {
  std::string content;
  char buffer[1 << 16];
  while (content.size() <= most) {
    const ssize_t count = ::read(file.number(), buffer, sizeof buffer);
    if (count == 0) break;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_read(path, errno);
    content.append(buffer, static_cast<std::size_t>(count));
  }
  return content;
}

void require_at_most(const std::filesystem::path& path, std::size_t bytes, std::size_t most) {
  if (bytes > most) throw InvalidInput(path.string(), fmt::format("must have at most {} bytes", most), "longer");
}

std::string read_regular(const Descriptor& file, const std::filesystem::path& path, std::size_t most) {
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) fail_read(path, errno);
  require_at_most(path, static_cast<std::size_t>(status.st_size), most);  // before reading any of it
  std::string content = read_up_to(file, path, most);
  require_at_most(path, content.size(), most);
  refuse_git_lfs_pointer(path, content);
  return content;
}

/// Writes all of `content`. Returns 0, or the errno of the failure.
int write_all(int descriptor, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(descriptor, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

/// Returns the descriptor of this process that the path stands for: 1 for /dev/stdout, 63 for /dev/fd/63, none for any
/// other path.
std::optional<int> descriptor_named(const std::filesystem::path& path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  const std::filesystem::path folder = path.parent_path();
  if (folder != "/dev/fd" && folder != "/proc/self/fd") return std::nullopt;
  const std::string number = path.filename().string();
  int descriptor = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), descriptor);
  if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
  return descriptor;
}

constexpr std::string_view kTemporaryPrefix = "frostpipe-", kTemporarySuffix = ".tmp";
constexpr std::size_t kRandomDigits = 16;

/// Returns a random name. It does not contain the final name, which may already have the maximal length.
std::string fresh_temporary_name() {
  std::uint64_t random = 0;
  if (::getentropy(&random, sizeof random) != 0) throw RuntimeFailure("the system gives no random number for a file");
  return fmt::format("{}{:0{}x}{}", kTemporaryPrefix, random, kRandomDigits, kTemporarySuffix);
}

bool is_temporary_name(std::string_view name) {
  if (!name.starts_with(kTemporaryPrefix) || !name.ends_with(kTemporarySuffix)) return false;
  if (name.size() != kTemporaryPrefix.size() + kRandomDigits + kTemporarySuffix.size()) return false;
  return name.substr(kTemporaryPrefix.size(), kRandomDigits).find_first_not_of("0123456789abcdef") ==
         std::string_view::npos;
}

}  // namespace

Descriptor open_regular_file(const std::filesystem::path& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.number() < 0) fail_read(path, errno);
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) fail_read(path, errno);
  if (S_ISDIR(status.st_mode)) fail_read(path, EISDIR);
  if (!S_ISREG(status.st_mode))
    throw InvalidInput(path.string(), "must be a regular file", S_ISFIFO(status.st_mode) ? "a pipe" : "a device");
  return file;
}

std::string read_text_file(const std::filesystem::path& path, std::size_t max_bytes) {
  return read_regular(open_regular_file(path), path, max_bytes);
}

std::string read_text_if_any(const std::filesystem::path& path, std::size_t max_bytes) {
  try {
    return read_text_file(path, max_bytes);
  } catch (const InvalidInput&) {
    return "";
  }
}

std::string read_named_file(const std::filesystem::path& path, std::size_t max_bytes) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) fail_read(path, errno);
  if (S_ISREG(status.st_mode)) return read_text_file(path, max_bytes);
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.number() < 0) fail_read(path, errno);
  const std::size_t most = std::min(max_bytes, kMaxTextBytes);
  std::string content = read_up_to(file, path, most);
  require_at_most(path, content.size(), most);
  return content;
}

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)), file_(-1) {
  if (path_.has_parent_path()) {
    std::error_code error;
    std::filesystem::create_directories(path_.parent_path(), error);
    if (error) fail(error.value());
  }
  struct stat old {};
  const bool replaces_file = ::lstat(path_.c_str(), &old) == 0 && S_ISREG(old.st_mode);
  const mode_t mode = replaces_file ? old.st_mode & 0777 : 0666;
  do {
    temporary_ = path_.parent_path() / fresh_temporary_name();
    file_ = Descriptor(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  } while (file_.number() < 0 && errno == EEXIST);
  if (file_.number() < 0) fail(errno);
  if (replaces_file) ::fchmod(file_.number(), mode);  // also what the umask removed; some file systems have no modes
}

AtomicFile::~AtomicFile() {
  if (file_.number() >= 0) ::unlink(temporary_.c_str());
}

void AtomicFile::fail(int error) const { fail_write(path_, error); }

void AtomicFile::write(std::string_view content) {
  if (const int error = write_all(file_.number(), content)) fail(error);
}

void AtomicFile::finish() {
  // The descriptor stays open until the rename has succeeded: the destructor uses it to decide whether to clean up.
  if (::fsync(file_.number()) != 0) fail(errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail(errno);
  if (file_.close() != 0) fail(errno);
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.finish();
}

void write_named_file(const std::filesystem::path& path, std::string_view content) {
  if (const auto descriptor = descriptor_named(path)) {
    if (const int error = write_all(*descriptor, content)) fail_write(path, error);
    return;
  }
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (!exists || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) return write_file_atomically(path, content);
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.number() < 0) fail_write(path, errno);
  if (const int error = write_all(file.number(), content)) fail_write(path, error);
  if (file.close() != 0) fail_write(path, errno);
}

bool append_to_file(const std::filesystem::path& path, std::string_view content) {
  const Descriptor file(
      ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666));
  struct stat status {};
  if (file.number() < 0 || ::fstat(file.number(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  if (write_all(file.number(), content) == 0) return true;
  std::ignore = ::ftruncate(file.number(), status.st_size);
  return false;
}

void remove_unfinished_files(const std::filesystem::path& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const bool is_ours = is_temporary_name(entry.path().filename().string()) &&
                         entry.symlink_status(ignored).type() == std::filesystem::file_type::regular;
    if (is_ours) std::filesystem::remove(entry.path(), ignored);
  }
}

void require_writable(const std::filesystem::path& path) {
  if (descriptor_named(path)) return;
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) fail_write(path, EISDIR);
  if (exists && !S_ISREG(status.st_mode)) {
    if (::access(path.c_str(), W_OK) != 0) fail_write(path, errno);
    return;
  }
  const AtomicFile unfinished(path);
}

std::string fingerprint(std::string_view content) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const unsigned char byte : content) hash = (hash ^ byte) * 1099511628211ULL;
  return fmt::format("{:016x}", hash);
}

}  // namespace frostpipe
