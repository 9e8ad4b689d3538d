#include "executor/installation/child_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <thread>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/system_reason.h"

namespace frostpipe {
namespace {

using Clock = std::chrono::steady_clock;

struct Pipe {
  Descriptor reading, writing;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw RuntimeFailure("a pipe cannot be made: " + system_reason(errno));
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

/// Appends the available bytes; closes the pipe at its end.
void read_some(Descriptor& pipe, std::string& text) {
  std::array<char, 4096> piece{};
  const ssize_t size = read(pipe.number(), piece.data(), piece.size());
  if (size > 0) {
    text.append(piece.data(), static_cast<std::size_t>(size));
  } else if (size == 0 || errno != EINTR) {
    pipe.close();
  }
}

/// Reads both pipes until their ends, or until `deadline`.
void read_all(Descriptor& output, Descriptor& errors, ChildOutput& child, Clock::time_point deadline) {
  while (output.is_open() || errors.is_open()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return;
    std::array<pollfd, 2> pipes{pollfd{output.number(), POLLIN, 0}, pollfd{errors.number(), POLLIN, 0}};
    if (poll(pipes.data(), pipes.size(), static_cast<int>(left)) < 0 && errno != EINTR) return;
    if (pipes[0].revents) read_some(output, child.output);
    if (pipes[1].revents) read_some(errors, child.errors);
  }
}

/// Waits for the child, which may close its streams and go on. Returns false if it has not ended at `deadline`; checks
/// at least once.
bool has_ended_by(Clock::time_point deadline, pid_t child, int& status) {
  constexpr std::chrono::milliseconds kBetweenLooks{1};
  while (true) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child || (ended < 0 && errno != EINTR)) return true;
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

[[noreturn]] void become(char* const* arguments, char* const* environment, int output, int errors) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  execvpe(arguments[0], arguments, environment);
  _exit(127);
}

/// Returns this process's environment with `variables` added or replaced.
std::vector<std::string> environment_with(const std::map<std::string, std::string>& variables) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    if (!variables.contains(text.substr(0, text.find('=')))) environment.push_back(text);
  }
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  return environment;
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

ChildOutput output_of(const std::vector<std::string>& command, const std::map<std::string, std::string>& variables,
                      std::chrono::seconds limit) {
  const std::vector<std::string> environment = environment_with(variables);
  const std::vector<char*> arguments = pointers_to(command), entries = pointers_to(environment);
  Pipe output = make_pipe(), errors = make_pipe();
  const pid_t child = fork();
  if (child == 0) become(arguments.data(), entries.data(), output.writing.number(), errors.writing.number());
  if (child < 0) throw RuntimeFailure(fmt::format("{}: cannot be started: {}", command.at(0), system_reason(errno)));
  output.writing.close();
  errors.writing.close();
  const Clock::time_point deadline = Clock::now() + limit;
  ChildOutput result;
  read_all(output.reading, errors.reading, result, deadline);
  int status = 0;
  result.timed_out = !has_ended_by(deadline, child, status);
  if (result.timed_out) {
    kill(child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  }
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace frostpipe
