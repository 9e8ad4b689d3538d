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

/// A process may take this long until its first heartbeat, because it loads its libraries. If it is stopped by a signal
/// (SIGSTOP), kSilenceLimitSeconds holds instead.
inline constexpr int kStartLimitSeconds = 60;

/// A process of the job as its launcher sees it: a rank of the current rendezvous round, or a spare.
struct RankProcess {
  pid_t pid;
  ControlChannel channel;
  int rank = -1;  // -1 = a spare
  int logical_rank = -1;
  bool running = true;
  int status = 0;       // status from waitpid(), once it no longer runs
  bool silent = false;  // killed because it fell silent
  bool stuck = false;   // killed because it did not stop
  bool named = false;   // mentioned in the cause of the next round
  bool has_beaten = false;
  bool suspended = false;                      // stopped by SIGSTOP or the like, and not continued
  bool stopped = false;                        // has given up its connections for the next round
  bool done = false;                           // has finished its work
  std::optional<messages::Progress> progress;  // its progress in this round, once it was asked to end
  std::chrono::steady_clock::time_point last_beat = std::chrono::steady_clock::now();

  /// True if a signal has ended the process, including the launcher's SIGKILL for a silent process.
  bool lost() const;
  /// True if the process ended by itself with an exit code other than 0.
  bool failed() const;
  /// True if that code is kPeerLostExitCode.
  bool lost_its_peer() const;
  /// Returns the time for which the process may send nothing before it counts as lost.
  std::chrono::seconds silence_limit() const;
};

/// Starts the command with the environment of a process of the job. `id` is its number on this host, and its first rank
/// unless it is a spare. It dies with this process. Throws RuntimeFailure if the system cannot start another process; a
/// command that cannot be executed ends with exit code 127.
RankProcess start_rank_process(const LaunchOptions& options, int id);

/// Returns a text such as "rank 1 (process 4711)".
std::string name_of(const RankProcess& process);
/// Describes the end of a process that is lost or has failed: "was killed by signal 9 (Killed)".
std::string how_it_ended(const RankProcess& process);

/// Records, without waiting, which processes have ended or were stopped or continued by a signal.
void reap(std::vector<RankProcess>& processes);
/// Calls reap() until no process runs, for `limit` at most.
void wait_for_end(std::vector<RankProcess>& processes, std::chrono::milliseconds limit);
/// Kills every process that still runs, and waits for its end for at most 1 s.
void end_all(std::vector<RankProcess>& processes);
bool is_any_running(const std::vector<RankProcess>& processes);

}  // namespace frostpipe
