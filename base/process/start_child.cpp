#include "base/process/start_child.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

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

}  // namespace

pid_t start_child(const std::vector<std::string>& command, const std::map<std::string, std::string>& variables,
                  const std::string& name) {
  // Allocate everything before fork, since other threads may be running.
  std::vector<std::string> environment;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    if (!variables.contains(text.substr(0, text.find('=')))) environment.push_back(text);
  }
  for (const auto& [variable, value] : variables) environment.push_back(variable + "=" + value);
  const std::vector<char*> argument_pointers = pointers_to(command), environment_pointers = pointers_to(environment);

  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw RuntimeFailure(fmt::format("starting {}: {}", name, system_reason(errno)));
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // Ctrl-C and signals to the whole process group are the parent's to handle: it tells its children what to do.
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGTERM, SIG_IGN);
    if (getppid() != parent) _exit(1);  // the parent died before the line above
    execve(argument_pointers[0], argument_pointers.data(), environment_pointers.data());
    _exit(127);
  }
  return pid;
}

}  // namespace frostpipe
