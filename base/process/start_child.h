#pragma once
#include <sys/types.h>

#include <csignal>
#include <map>
#include <string>
#include <vector>

namespace frostpipe {

/// How a child process differs from this one.
struct ChildOptions {
  std::map<std::string, std::string> variables = {};  // set beside this process's environment
  /// Descriptors that become its standard streams. -1: the child shares this process's stream.
  int input = -1, output = -1, errors = -1;
  int signal_at_parents_death = SIGKILL;
  /// The child ignores SIGINT and SIGTERM, which go to a whole group of processes: this process decides how it ends.
  bool leaves_signals_to_parent = false;
};

/// Starts the command, whose program is found by PATH unless its name has a slash. The child gets a signal when the
/// thread that started it ends. Throws RuntimeFailure, which calls it `name`, where the system has no room for another
/// process; a command that cannot be executed ends with exit code 127.
pid_t start_child(const std::vector<std::string>& command, const ChildOptions& options, const std::string& name);

/// Waits until the child has ended. Returns its exit code, or 128 + the signal that ended it.
int wait_for_child(pid_t child);

}  // namespace frostpipe
