#pragma once
#include <cstddef>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>

#include "base/descriptor.h"

namespace frostpipe {

/// More than any model folder's JSON or vocabulary, plan or profile has.
constexpr std::size_t kMostTextBytes = std::size_t{1} << 30;
/// For data sets, which are as large as they are.
constexpr std::size_t kAnySize = std::numeric_limits<std::size_t>::max();

/// Opened for reading, and a regular file for certain. Never waits: a pipe, a device or a socket in its place is
/// refused. Throws InvalidInput that names the path.
Descriptor open_regular_file(const std::filesystem::path& path);

/// The whole of a regular file as bytes. Throws InvalidInput that names the path and the system's reason, or what is
/// there instead of such a file: a pipe, a Git LFS pointer.
std::string read_text_file(const std::filesystem::path& path, std::size_t most_bytes = kMostTextBytes);

/// The same, but nothing where there is no regular file that can be read.
std::string read_text_if_any(const std::filesystem::path& path, std::size_t most_bytes = kMostTextBytes);

/// The same as read_text_file for what a user names on the command line, which may also be a pipe: /dev/stdin, a
/// process substitution. Of a pipe at most kMostTextBytes are taken.
std::string read_named_file(const std::filesystem::path& path, std::size_t most_bytes = kMostTextBytes);

/// A file in the making: a fresh one beside `path`, with a name that nobody can foresee, until finish() renames it. So
/// a reader never sees half a file, a failed write leaves the old one, and whatever has the name - a link, a pipe - is
/// replaced and not written through. Everything that frostpipe leaves in a folder is written like this. A failure is a
/// RuntimeFailure (full disk, no permission) that names `path`; after it, or without finish(), nothing stays.
class AtomicFile {
 public:
  /// Creates missing parent folders.
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view content);
  /// Renames when the content has reached the disk.
  void finish();

 private:
  [[noreturn]] void fail(int error) const;

  std::filesystem::path path_, temporary_;
  Descriptor file_;
};

/// An AtomicFile of one piece.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

/// The same for what a user names on the command line, which may also be a pipe or a device, or a link to one:
/// /dev/stdout, a process substitution, /dev/null. Those are written in place.
void write_named_file(const std::filesystem::path& path, std::string_view content);

/// Adds to the end of a regular file, which it creates. False where it cannot: a full disk, a link or a pipe in its
/// place.
bool append_to_file(const std::filesystem::path& path, std::string_view content);

/// Removes from the folder what AtomicFiles of processes that ended early have left there.
void remove_unfinished_files(const std::filesystem::path& folder);

/// Finds out whether write_named_file can write there, before the work whose result it shall be. What is there stays as
/// it is; missing parent folders are made. Throws as it would.
void require_writable(const std::filesystem::path& path);

/// 64-bit FNV-1a of the bytes as 16 hex digits: tells whether a file is the one a plan was made from. Not
/// cryptographic.
std::string fingerprint(std::string_view content);

}  // namespace frostpipe
