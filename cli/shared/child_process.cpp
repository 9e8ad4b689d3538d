#include "cli/shared/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/error.h"
#include "base/files.h"

namespace frostpipe {

int run_self(const std::vector<std::string>& arguments, const std::filesystem::path& log) {
  write_file_atomically(log, fmt::format("$ frostpipe {}\n", fmt::join(arguments, " ")));
  const int output = open(log.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
  if (output < 0) throw RuntimeFailure(fmt::format("{}: cannot be written: {}", log.string(), std::strerror(errno)));
  std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  std::vector<char*> pointers{program.data()};
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);

  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    execv(program.c_str(), pointers.data());
    _exit(127);
  }
  close(output);
  if (child < 0) return 127;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace frostpipe
