#pragma once
#include <string>
#include <vector>

namespace frostpipe {

struct LaunchOptions {
  std::vector<std::string> command;
  int num_ranks = 1;
  int num_spares = 0;                 // extra processes that can replace lost ranks
  int max_restarts = 0;               // number of rendezvous rounds that may follow losses; 0 = a loss ends the job
  bool ends_with_checkpoint = false;  // the ranks ask Membership::is_to_end() before every step
};

/// Runs the command once per local rank and spare, connects the ranks of each rendezvous round with each other by
/// socket pairs, and watches the processes. Membership is the processes' side of this. Returns 0 if all ranks ended
/// with 0.
///
/// A rank is lost when a signal kills it, or when it has sent no heartbeat for kSilenceLimitSeconds (kStartLimitSeconds
/// before the first one) and is therefore killed. If restarts are left, a new rendezvous round begins and a sentence on
/// stderr describes it. Survivors report that they have stopped; those that do not within kStopLimitSeconds are lost
/// too. A spare takes each lost rank's place; without one, fewer ranks go on, renumbered in their old order. If
/// survivors lost a connection although no rank is lost, a new round begins with the same ranks.
///
/// A rank that ends with an exit code other than 0 has printed the reason and would fail again, so it ends the job, as
/// does a loss without restarts left. All other ranks are then ended within seconds, a sentence on stderr names the
/// rank, and the exit code is 1 (2 if a rank ended with 2: bad usage). The processes die with the launcher, even if it
/// is killed by SIGKILL.
///
/// SIGINT, SIGTERM or SIGHUP (unless it is ignored, as under nohup) to the launcher, which alone handles them, ends the
/// job with exit code 128 + signal: at once, or, with `ends_with_checkpoint` and after the first step, before the same
/// step on all ranks after they have written a checkpoint. A second signal ends the job at once, and so does a
/// checkpoint that takes more than 10 minutes.
int launch_local_ranks(const LaunchOptions& options);

}  // namespace frostpipe
