#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>

namespace frostpipe {

/// What this process may have of a resource (RLIMIT_NOFILE, RLIMIT_AS, ...); none: as much as there is.
std::optional<std::int64_t> process_limit(int resource);

/// What the system says of an error number, and the limit of this process (ulimit) that it may come from:
/// "Too many open files (this process may have 20: ulimit -n)".
std::string system_reason(int error);

/// The same for what the standard library throws, after the files that it names: "runs/mine/model: Read-only file
/// system". Without files and with EAGAIN it is a thread that could not be started.
std::string system_reason(const std::system_error& error);

}  // namespace frostpipe
