#pragma once
#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace frostpipe {

/// Starts the command with this process's environment and the given variables. The child is killed when the thread that
/// started it ends, and ignores SIGINT and SIGTERM, which often go to a whole process group: the parent handles them.
/// Throws RuntimeFailure, which calls the child `name`, if the system cannot start another process. If the command
/// cannot be executed, the child exits with code 127.
pid_t start_child(const std::vector<std::string>& command, const std::map<std::string, std::string>& variables,
                  const std::string& name);

}  // namespace frostpipe
