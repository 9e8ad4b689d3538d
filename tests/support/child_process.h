#pragma once
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace frostpipe::test {

/// Returns whether `works` returns true in a separate process, whose limits it may change. Also false if it throws or a
/// signal ends it.
bool holds_in_a_child(const auto& works) {
  const pid_t child = fork();
  if (child == 0) {
    bool holds = false;
    try {
      holds = works();
    } catch (...) {
    }
    _exit(holds ? 0 : 1);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// holds_in_a_child with a limit of `bytes` for every file, which emulates a full disk without root.
bool holds_with_files_of(rlim_t bytes, const auto& works) {
  return holds_in_a_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, bytes};
    return setrlimit(RLIMIT_FSIZE, &limit) == 0 && works();
  });
}

}  // namespace frostpipe::test
