#include "executor/launch.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "executor/heartbeat.h"
#include "profiles/error.h"

namespace frostpipe {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

int integer_variable(const char* name) {
  const char* const text = std::getenv(name);
  if (!text) throw InvalidInput(std::string("environment variable ") + name, "must be set when RANK is", "not set");
  int value = 0;
  const char* const end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error != std::errc() || stop != end || value < 0) {
    throw InvalidInput(std::string("environment variable ") + name, "must be a whole number >= 0", text);
  }
  return value;
}

volatile std::sig_atomic_t received_signal = 0;
void remember_signal(int signal) { received_signal = signal; }

struct LocalRank {
  int rank = 0;
  pid_t pid = 0;
  bool running = true;
  int status = 0;  // waitpid's, once it no longer runs
  std::string last_beat;
  Clock::time_point last_beat_at;
};

pid_t start_rank(const std::vector<std::string>& command, int rank, int num_ranks, int port) {
  // Everything that allocates happens before fork: the store's threads are running.
  std::map<std::string, std::string> variables{{"RANK", std::to_string(rank)},       {"LOCAL_RANK", std::to_string(rank)},
                                               {"WORLD_SIZE", std::to_string(num_ranks)}, {"MASTER_ADDR", "127.0.0.1"},
                                               {"MASTER_PORT", std::to_string(port)}, {"FROSTPIPE_LAUNCHER", std::to_string(getpid())},
                                               {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
  std::vector<std::string> environment;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    if (!variables.contains(text.substr(0, text.find('=')))) environment.push_back(text);
  }
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  std::vector<char*> arguments, environment_pointers;
  for (const std::string& text : command) arguments.push_back(const_cast<char*>(text.c_str()));
  for (const std::string& text : environment) environment_pointers.push_back(const_cast<char*>(text.c_str()));
  arguments.push_back(nullptr);
  environment_pointers.push_back(nullptr);

  const pid_t launcher = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw RuntimeFailure(fmt::format("starting rank {}: {}", rank, std::strerror(errno)));
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher) _exit(1);  // the launcher died before the line above
    execve(arguments[0], arguments.data(), environment_pointers.data());
    _exit(127);
  }
  return pid;
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  if (WEXITSTATUS(status) == 127) return "could not be started";
  if (WEXITSTATUS(status) == kPeerLostExitCode) return "lost the connection to another rank";
  return fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

void reap(std::vector<LocalRank>& ranks) {
  for (LocalRank& rank : ranks) {
    if (rank.running && waitpid(rank.pid, &rank.status, WNOHANG) == rank.pid) rank.running = false;
  }
}

bool any_running(const std::vector<LocalRank>& ranks) {
  return std::any_of(ranks.begin(), ranks.end(), [](const LocalRank& rank) { return rank.running; });
}

bool lost_its_peer(const LocalRank& rank) { return WIFEXITED(rank.status) && WEXITSTATUS(rank.status) == kPeerLostExitCode; }

/// The rank that failed by itself, if one has; else one that lost its peer; null if all is well so far.
const LocalRank* culprit(const std::vector<LocalRank>& ranks) {
  const LocalRank* found = nullptr;
  for (const LocalRank& rank : ranks) {
    if (rank.running || rank.status == 0) continue;
    if (!found || lost_its_peer(*found)) found = &rank;
  }
  return found;
}

/// Ends every rank that still runs: politely, then not. A stopped rank ignores the polite way.
void end_all(std::vector<LocalRank>& ranks) {
  for (const int signal : {SIGTERM, SIGKILL}) {
    for (const LocalRank& rank : ranks) {
      if (rank.running) kill(rank.pid, signal);
    }
    const Clock::time_point until = Clock::now() + 1s;
    while (any_running(ranks) && Clock::now() < until) {
      reap(ranks);
      std::this_thread::sleep_for(10ms);
    }
  }
}

}  // namespace

std::optional<RankEnvironment> rank_environment() {
  if (!std::getenv("RANK")) return std::nullopt;
  RankEnvironment self;
  self.rank = integer_variable("RANK");
  self.world_size = integer_variable("WORLD_SIZE");
  self.local_rank = integer_variable("LOCAL_RANK");
  self.master_port = integer_variable("MASTER_PORT");
  if (self.master_port > 65535) throw InvalidInput("environment variable MASTER_PORT", "must be at most 65535", std::to_string(self.master_port));
  if (const char* const address = std::getenv("MASTER_ADDR")) self.master_address = address;
  const char* const agent = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  self.store_is_external = agent && std::string(agent) == "True";
  if (self.rank >= self.world_size) {
    throw InvalidInput("environment variable RANK", fmt::format("must be less than WORLD_SIZE ({})", self.world_size), std::to_string(self.rank));
  }
  return self;
}

int launch_local_ranks(const std::vector<std::string>& command, int num_ranks) {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  const auto store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);

  std::signal(SIGINT, remember_signal);
  std::signal(SIGTERM, remember_signal);
  std::vector<LocalRank> ranks;
  for (int rank = 0; rank < num_ranks; ++rank) {
    ranks.push_back({.rank = rank, .pid = start_rank(command, rank, num_ranks, store->getPort()), .running = true, .status = 0, .last_beat = "", .last_beat_at = Clock::now()});
  }

  const auto fail = [&](const std::string& sentence, int code) {
    end_all(ranks);
    std::fprintf(stderr, "frostpipe: %s; ended the other ranks\n", sentence.c_str());
    return code;
  };
  Clock::time_point next_look = Clock::now() + 1s;
  for (;;) {
    if (received_signal) {
      end_all(ranks);
      std::fprintf(stderr, "frostpipe: stopped by signal %d\n", static_cast<int>(received_signal));
      return 1;
    }
    reap(ranks);
    if (culprit(ranks)) {
      // The rank at fault may still be on its way out, or stopped: its peers see the broken connection first.
      const Clock::time_point until = Clock::now() + 1s;
      while (lost_its_peer(*culprit(ranks)) && any_running(ranks) && Clock::now() < until) {
        std::this_thread::sleep_for(10ms);
        reap(ranks);
      }
      const LocalRank& named = *culprit(ranks);
      const int code = WIFEXITED(named.status) && WEXITSTATUS(named.status) == 2 ? 2 : 1;
      return fail(fmt::format("rank {} (process {}) {}", named.rank, named.pid, how_it_ended(named.status)), code);
    }
    if (!any_running(ranks)) return 0;
    if (Clock::now() > next_look + 2s) {
      // This process itself was held up (Ctrl-Z, a busy machine): the ranks may have been too.
      for (LocalRank& rank : ranks) rank.last_beat_at = Clock::now();
    }
    if (Clock::now() > next_look) {
      next_look = Clock::now() + 1s;
      for (LocalRank& rank : ranks) {
        if (!rank.running || !store->check({heartbeat_key(rank.rank)})) continue;
        const std::string beat = store->get_to_str(heartbeat_key(rank.rank));
        if (beat != rank.last_beat) {
          rank.last_beat = beat;
          rank.last_beat_at = Clock::now();
        } else if (beat != "done" && Clock::now() - rank.last_beat_at > std::chrono::seconds(kSilenceLimitSeconds)) {
          return fail(fmt::format("rank {} (process {}) has sent no heartbeat for {} s: it is stopped or stuck", rank.rank,
                                  rank.pid, kSilenceLimitSeconds),
                      1);
        }
      }
    }
    std::this_thread::sleep_for(20ms);
  }
}

}  // namespace frostpipe
