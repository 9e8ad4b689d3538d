#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>

namespace frostpipe {

/// Returns this process's limit for a resource (RLIMIT_NOFILE, RLIMIT_AS, ...); none = unlimited.
std::optional<std::int64_t> process_limit(int resource);

/// Returns the system's text for an error number, and the limit of this process (ulimit) that may have caused it: "Too
/// many open files (this process may have 20: ulimit -n)".
std::string system_reason(int error);

/// Does the same for an exception of the standard library, with the files that it names in front: "runs/mine/model:
/// Read-only file system". An EAGAIN without files means that a thread could not be started.
std::string system_reason(const std::system_error& error);

}  // namespace frostpipe
