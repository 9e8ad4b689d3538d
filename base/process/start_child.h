#pragma once
#include <sys/types.h>

#include <csignal>
#include <map>
#include <string>
#include <vector>

namespace frostpipe {

/// The settings in which a child process differs from this one.
struct ChildOptions {
  std::map<std::string, std::string> variables = {};  // added to this process's environment, which they override
  /// Descriptors that become its standard streams. -1: the child shares this process's stream.
  int input = -1, output = -1, errors = -1;
  int signal_at_parents_death = SIGKILL;
  /// Whether the child ignores SIGINT, SIGTERM and SIGHUP, which often go to a whole process group: this process then
  /// decides how the child ends.
  bool leaves_signals_to_parent = false;
};

/// Starts the command, whose program is found by PATH unless its name has a slash. The child gets
/// signal_at_parents_death when the thread that started it ends. Throws RuntimeFailure, which calls the child `name`,
/// if the system cannot start another process. If the command cannot be executed, the child exits with code 127.
pid_t start_child(const std::vector<std::string>& command, const ChildOptions& options, const std::string& name);

/// Waits until the child has ended. Returns its exit code, or 128 + the signal that ended it. Throws RuntimeFailure if
/// the system does not say it: for a process that is no child, or whose end was already awaited.
int wait_for_child(pid_t child);

}  // namespace frostpipe
