#include "executor/elastic/rank_process.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <map>
#include <thread>
#include <utility>

#include "base/process/start_child.h"

namespace frostpipe {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

}  // namespace

bool RankProcess::lost() const { return !running && (silent || WIFSIGNALED(status)); }
bool RankProcess::failed() const { return !running && !lost() && status != 0; }
bool RankProcess::lost_its_peer() const { return failed() && WEXITSTATUS(status) == kPeerLostExitCode; }
std::chrono::seconds RankProcess::silence_limit() const {
  return std::chrono::seconds(has_beaten || suspended ? kSilenceLimitSeconds : kStartLimitSeconds);
}

RankProcess start_rank_process(const LaunchOptions& options, int id) {
  auto [ours, theirs] = ControlChannel::make_pair();
  std::map<std::string, std::string> variables{{"RANK", std::to_string(id)},
                                               {"LOCAL_RANK", std::to_string(id)},
                                               {"WORLD_SIZE", std::to_string(options.num_ranks)},
                                               {"FROSTPIPE_LAUNCHER", std::to_string(getpid())},
                                               {kControlVariable, std::to_string(theirs.descriptor())}};
  if (options.max_restarts > 0) variables[kMayRendezvousAgainVariable] = "1";
  return RankProcess{.pid = start_child(options.command, {.variables = variables, .leaves_signals_to_parent = true},
                                        fmt::format("rank {}", id)),
                     .channel = std::move(ours)};
}

std::string name_of(const RankProcess& process) {
  return process.rank < 0 ? fmt::format("a spare (process {})", process.pid)
                          : fmt::format("rank {} (process {})", process.rank, process.pid);
}

std::string how_it_ended(const RankProcess& process) {
  if (process.silent)
    return fmt::format("has sent no heartbeat for {} s: it is stopped or stuck", process.silence_limit().count());
  if (WIFSIGNALED(process.status))
    return fmt::format("was killed by signal {} ({})", WTERMSIG(process.status), strsignal(WTERMSIG(process.status)));
  if (WEXITSTATUS(process.status) == 127) return "could not be started";
  if (process.lost_its_peer()) return "lost the connection to another rank";
  return fmt::format("ended with exit code {}", WEXITSTATUS(process.status));
}

void reap(std::vector<RankProcess>& processes) {
  for (RankProcess& process : processes) {
    int status = 0;
    while (process.running && waitpid(process.pid, &status, WNOHANG | WUNTRACED | WCONTINUED) == process.pid) {
      if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
        process.suspended = WIFSTOPPED(status);
        process.last_beat = Clock::now();  // the silence limit counts from now on
      } else {
        process.status = status;
        process.running = false;
      }
    }
  }
}

bool is_any_running(const std::vector<RankProcess>& processes) {
  return std::any_of(processes.begin(), processes.end(), [](const RankProcess& process) { return process.running; });
}

void wait_for_end(std::vector<RankProcess>& processes, std::chrono::milliseconds limit) {
  for (const auto until = Clock::now() + limit; is_any_running(processes) && Clock::now() < until;
       std::this_thread::sleep_for(10ms))
    reap(processes);
}

void end_all(std::vector<RankProcess>& processes) {
  for (const RankProcess& process : processes) {
    if (process.running) kill(process.pid, SIGKILL);
  }
  wait_for_end(processes, 1s);
}

}  // namespace frostpipe
