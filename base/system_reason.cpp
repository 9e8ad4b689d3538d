#include "base/system_reason.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/units.h"

namespace frostpipe {
namespace {

/// Returns the limits that may have caused this error number, as far as they are set.
std::vector<std::string> limits_behind(int error) {
  std::vector<std::string> limits;
  if (const auto limit = process_limit(RLIMIT_NOFILE); limit && error == EMFILE)
    limits.push_back(fmt::format("this process may have {}: ulimit -n", *limit));
  if (const auto limit = process_limit(RLIMIT_FSIZE); limit && error == EFBIG)
    limits.push_back(fmt::format("a file may have {}: ulimit -f", format_bytes(*limit)));
  if (const auto limit = process_limit(RLIMIT_NPROC); limit && error == EAGAIN)
    limits.push_back(fmt::format("this user may have {} processes and threads: ulimit -u", *limit));
  if (const auto limit = process_limit(RLIMIT_AS); limit && (error == ENOMEM || error == EAGAIN)) {
    limits.push_back(fmt::format("this process may map {}: ulimit -v", format_bytes(*limit)));
  }
  return limits;
}

}  // namespace

std::optional<std::int64_t> process_limit(int resource) {
  rlimit limit{};
  if (getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return std::nullopt;
  return static_cast<std::int64_t>(limit.rlim_cur);
}

std::string system_reason(int error) {
  std::string reason = std::strerror(error), separator = " (";
  for (const std::string& limit : limits_behind(error)) reason += std::exchange(separator, ", ") + limit;
  return separator == ", " ? reason + ")" : reason;
}

std::string system_reason(const std::system_error& error) {
  std::string reason = system_reason(error.code().value());
  if (error.code().category() != std::generic_category() && error.code().category() != std::system_category())
    reason = error.what();
  if (const auto* const files = dynamic_cast<const std::filesystem::filesystem_error*>(&error)) {
    if (files->path1().empty()) return reason;
    const std::string second = files->path2().empty() ? "" : fmt::format(" and {}", files->path2().string());
    return fmt::format("{}{}: {}", files->path1().string(), second, reason);
  }
  return error.code().value() == EAGAIN ? "a thread cannot be started: " + reason : reason;
}

}  // namespace frostpipe
