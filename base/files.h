#pragma once
#include <cstddef>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>

#include "base/descriptor.h"

namespace frostpipe {

/// The default limit of the functions below, 1 GiB. It is larger than any JSON file, vocabulary, plan or profile.
constexpr std::size_t kMaxTextBytes = std::size_t{1} << 30;
/// The limit for data sets, which may have any size.
constexpr std::size_t kAnySize = std::numeric_limits<std::size_t>::max();

/// Opens a regular file for reading without ever blocking. Throws InvalidInput that names the path if it cannot be
/// opened, or is a folder, a pipe, a device or a socket.
Descriptor open_regular_file(const std::filesystem::path& path);

/// Returns the content of a regular file as bytes. Throws InvalidInput that names the path and the system's reason, or
/// says that it is not a regular file, that it is a Git LFS pointer, or that it has more than `max_bytes` bytes.
std::string read_text_file(const std::filesystem::path& path, std::size_t max_bytes = kMaxTextBytes);

/// Does the same as read_text_file, but returns "" where that would throw.
std::string read_text_if_any(const std::filesystem::path& path, std::size_t max_bytes = kMaxTextBytes);

/// Does the same as read_text_file for a path from the command line, which may also be a pipe: /dev/stdin, a process
/// substitution. A pipe with more than kMaxTextBytes is refused, even if `max_bytes` is larger.
std::string read_named_file(const std::filesystem::path& path, std::size_t max_bytes = kMaxTextBytes);

/// Writes a file under a random name beside `path` until finish() renames it to `path`. So a reader never sees half a
/// file, a failed write leaves the old file, and a link or a pipe at `path` is replaced, not written through. Every
/// file that frostpipe writes as a whole is written like this. A failure (full disk, no permission) throws
/// RuntimeFailure that names `path`; after a failure, or without finish(), the unfinished file is removed.
class AtomicFile {
 public:
  /// Creates missing parent folders. A file that exists keeps its permissions.
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view content);
  /// Renames the file once its content has reached the disk.
  void finish();

 private:
  [[noreturn]] void fail(int error) const;

  std::filesystem::path path_, temporary_;
  Descriptor file_;
};

/// Writes an AtomicFile in one piece.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

/// Does the same as write_file_atomically for a path from the command line. A pipe or a device (/dev/stdout, a
/// process substitution, /dev/null), or a link to one, is written in place.
void write_named_file(const std::filesystem::path& path, std::string_view content);

/// Appends to a regular file and creates it if it is missing. Returns false on failure (a full disk, or a link or a
/// pipe in its place); then nothing of `content` stays in the file.
bool append_to_file(const std::filesystem::path& path, std::string_view content);

/// Removes the unfinished AtomicFiles in the folder, which a process leaves if it is killed. No process may be writing
/// one there at the same time.
void remove_unfinished_files(const std::filesystem::path& folder);

/// Checks that write_named_file can write to `path`, before the work whose result shall go there. Leaves an existing
/// file as it is and creates missing parent folders. Throws as write_named_file would.
void require_writable(const std::filesystem::path& path);

/// Returns the 64-bit FNV-1a hash of the bytes as 16 hex digits. It tells whether a file is the one from which a plan
/// was made, and is not cryptographic.
std::string fingerprint(std::string_view content);

}  // namespace frostpipe
