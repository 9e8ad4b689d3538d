#include "executor/run_folder/folder_lock.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <string>

#include "base/error.h"
#include "base/system_reason.h"

namespace frostpipe {
namespace {

/// Returns a text such as "process 4711 on host node3, since 2026-01-31 12:00:00 UTC".
std::string describe_this_process() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  return fmt::format("process {} on host {}, since {:%Y-%m-%d %H:%M:%S} UTC", getpid(), host.data(), fmt::gmtime(now));
}

std::string read_owner(int descriptor) {
  std::array<char, 512> text{};
  const ssize_t size = pread(descriptor, text.data(), text.size(), 0);
  const std::string owner(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  return owner.empty() ? "another process" : owner.substr(0, owner.find('\n'));
}

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder) {
  std::error_code none;
  std::filesystem::create_directories(folder, none);
  const std::filesystem::path path = folder / ".lock";
  file_ = Descriptor(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (!file_.is_open())
    throw RuntimeFailure(fmt::format("{}: cannot be written: {}", path.string(), system_reason(errno)));
  if (flock(file_.number(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return;  // this file system has no locks
    const std::string owner = read_owner(file_.number());
    throw RuntimeFailure(fmt::format("{}: is being written by {}. Wait for it, end it, or give another folder (-o)",
                                     folder.string(), owner));
  }
  const std::string owner = describe_this_process() + "\n";
  // On a full disk the owner's name may be incomplete.
  if (ftruncate(file_.number(), 0) != 0 || pwrite(file_.number(), owner.data(), owner.size(), 0) < 0) return;
}

}  // namespace frostpipe
