#pragma once
#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace frostpipe {

/// Starts the command with this process's environment and these variables. It dies with the thread that starts it, and
/// SIGINT and SIGTERM, which go to a whole group of processes, are left to this process. Throws RuntimeFailure, which
/// calls it `name`, where the system has no room for another process; a command that cannot be executed ends with exit
/// code 127.
pid_t start_child(const std::vector<std::string>& command, const std::map<std::string, std::string>& variables,
                  const std::string& name);

}  // namespace frostpipe
