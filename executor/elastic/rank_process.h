#pragma once
#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/process/control_channel.h"
#include "executor/elastic/launch.h"
#include "executor/elastic/membership.h"

namespace frostpipe {

/// A process may take this long until its first heartbeat: it loads its libraries. Not while it is stopped (SIGSTOP):
/// that is known, and kSilenceLimitSeconds holds.
inline constexpr int kStartLimitSeconds = 60;

/// A process of the job as its launcher sees it: a rank of the running rendezvous round, or a spare.
struct RankProcess {
  pid_t pid;
  ControlChannel channel;
  int rank = -1;  // -1 = a spare
  int logical_rank = -1;
  bool running = true;
  int status = 0;       // waitpid's, once it no longer runs
  bool silent = false;  // killed because it was
  bool stuck = false;   // killed because it did not stop
  bool named = false;   // in the cause of the round that is under way
  bool has_beaten = false;
  bool suspended = false;                      // by SIGSTOP or its like, and not continued
  bool stopped = false;                        // has given up its connections, for the next round
  bool done = false;                           // has ended its work
  std::optional<messages::Progress> progress;  // of this round, once it was asked to end
  std::chrono::steady_clock::time_point last_beat = std::chrono::steady_clock::now();

  /// A signal has ended it, ours too if it was silent.
  bool lost() const;
  /// It ended by itself, with an exit code other than 0.
  bool failed() const;
  bool lost_its_peer() const;
  /// It is lost once it has sent nothing for this long.
  std::chrono::seconds silence_limit() const;
};

/// Starts the command with the environment of a job's process; `id`: its number on this host, and its rank unless it
/// is a spare. It dies with this process. Throws RuntimeFailure where the system has no room for another process; a
/// command that cannot be executed ends with exit code 127.
RankProcess start_rank_process(const LaunchOptions& options, int id);

/// "rank 1 (process 4711)"
std::string name_of(const RankProcess& process);
/// Of one that is lost or has failed: "was killed by signal 9 (Killed)".
std::string how_it_ended(const RankProcess& process);

/// Notes who has ended, was suspended or was continued, without waiting.
void reap(std::vector<RankProcess>& processes);
/// Reaps until none runs any more, but no longer than `limit`.
void wait_for_end(std::vector<RankProcess>& processes, std::chrono::milliseconds limit);
/// Kills every process that still runs.
void end_all(std::vector<RankProcess>& processes);
bool is_any_running(const std::vector<RankProcess>& processes);

}  // namespace frostpipe
