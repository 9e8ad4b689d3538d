#include "base/process/start_child.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "base/system_reason.h"

namespace frostpipe {
namespace {

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

/// Returns this process's environment, in which `variables` replace those of the same names.
std::vector<std::string> environment_with(const std::map<std::string, std::string>& variables) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    if (!variables.contains(text.substr(0, text.find('=')))) environment.push_back(text);
  }
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  return environment;
}

}  // namespace

pid_t start_child(const std::vector<std::string>& command, const ChildOptions& options, const std::string& name) {
  // Allocate everything before fork, since other threads may be running.
  const std::vector<std::string> environment = environment_with(options.variables);
  const std::vector<char*> arguments = pointers_to(command), entries = pointers_to(environment);
  const int streams[] = {options.input, options.output, options.errors};

  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw RuntimeFailure(fmt::format("{}: cannot be started: {}", name, system_reason(errno)));
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, options.signal_at_parents_death);
    if (options.leaves_signals_to_parent) {
      std::signal(SIGINT, SIG_IGN);
      std::signal(SIGTERM, SIG_IGN);
      std::signal(SIGHUP, SIG_IGN);
    }
    if (getppid() != parent) _exit(1);  // the parent died before the child asked for the signal
    for (int stream = 0; stream < 3; ++stream) {
      if (streams[stream] >= 0) dup2(streams[stream], stream);
    }
    execvpe(arguments[0], arguments.data(), entries.data());
    _exit(127);
  }
  return pid;
}

int wait_for_child(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR)
      throw RuntimeFailure(fmt::format("process {}: its end is not known: {}", child, system_reason(errno)));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace frostpipe
