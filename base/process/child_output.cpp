#include "base/process/child_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <thread>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/files.h"
#include "base/process/start_child.h"
#include "base/system_reason.h"

namespace frostpipe {
namespace {

namespace fs = std::filesystem;

using Clock = std::chrono::steady_clock;

struct Pipe {
  Descriptor reading, writing;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw RuntimeFailure("a pipe cannot be made: " + system_reason(errno));
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

/// Appends the bytes that the pipe has, and closes the pipe when it has ended.
void read_some(Descriptor& pipe, std::string& text) {
  std::array<char, 4096> piece{};
  const ssize_t size = read(pipe.number(), piece.data(), piece.size());
  if (size > 0) {
    text.append(piece.data(), static_cast<std::size_t>(size));
  } else if (size == 0 || errno != EINTR) {
    pipe.close();
  }
}

/// Reads both pipes until they end, or until `deadline`.
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

/// Returns false if the child has not ended by `deadline`; it may have closed its streams and still run. Checks at
/// least once, and leaves the child to be waited for.
bool has_ended_by(Clock::time_point deadline, pid_t child) {
  constexpr std::chrono::milliseconds kBetweenLooks{1};
  while (true) {
    siginfo_t ended{};
    const int failed = waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT);
    if (ended.si_pid == child || (failed != 0 && errno != EINTR)) return true;
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

}  // namespace

ChildOutput output_of(const std::vector<std::string>& command, const std::map<std::string, std::string>& variables,
                      std::chrono::seconds limit) {
  const Descriptor nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  Pipe output = make_pipe(), errors = make_pipe();
  const pid_t child = start_child(command,
                                  {.variables = variables,
                                   .input = nothing.number(),
                                   .output = output.writing.number(),
                                   .errors = errors.writing.number()},
                                  command.at(0));
  output.writing.close();
  errors.writing.close();
  const Clock::time_point deadline = Clock::now() + limit;
  ChildOutput result;
  read_all(output.reading, errors.reading, result, deadline);
  result.timed_out = !has_ended_by(deadline, child);
  if (result.timed_out) kill(child, SIGKILL);
  result.exit_code = wait_for_child(child);
  return result;
}

int run_logged(const std::vector<std::string>& command, const fs::path& log) {
  const std::string name = fs::path(command.at(0)).filename();
  const std::vector<std::string> arguments(command.begin() + 1, command.end());
  write_file_atomically(log, fmt::format("$ {} {}\n", name, fmt::join(arguments, " ")));
  const Descriptor file(open(log.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC));
  if (!file.is_open())
    throw RuntimeFailure(fmt::format("{}: cannot be written: {}", log.string(), system_reason(errno)));
  return wait_for_child(start_child(
      command, {.output = file.number(), .errors = file.number(), .signal_at_parents_death = SIGTERM}, name));
}

}  // namespace frostpipe
