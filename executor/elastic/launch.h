#pragma once
#include <string>
#include <vector>

namespace frostpipe {

struct LaunchOptions {
  std::vector<std::string> command;
  int num_ranks = 1;
  int num_spares = 0;                 // processes beside the ranks, ready to take a lost one's place
  int max_restarts = 0;               // how many rendezvous rounds may follow a loss; 0 = a loss ends the job
  bool ends_with_checkpoint = false;  // the ranks ask Membership::is_to_end() before every step
};

/// Runs the command once per local rank and spare (Membership is their side of it), connects the ranks of each
/// rendezvous round with each other by pairs of sockets that only they have, and watches the processes: returns 0 when
/// all ranks ended with 0.
///
/// A rank is lost when a signal kills it, or when its heartbeat has been silent for kSilenceLimitSeconds, before its
/// first one kStartLimitSeconds (it is then killed). With restarts left a new rendezvous round begins, and a sentence
/// on stderr says how: survivors say that they have stopped (those that do not within kStopLimitSeconds are lost too),
/// a spare takes each lost rank's place, or there are fewer ranks from then on, renumbered in their old order.
/// Survivors that lost a connection though nobody is lost meet again as they are.
///
/// A rank that ends with an exit code other than 0 has said why, and would fail again: it ends the job, as does a loss
/// without restarts left. All others are then ended within seconds, a sentence on stderr names the rank, and the exit
/// code is 1 (2 if a rank ended with 2: bad usage). Processes die with the launcher (also on its SIGKILL).
///
/// SIGINT and SIGTERM to the launcher, which alone heeds them, end the job with exit code 128 + signal: at once, or,
/// where the ranks can, before the same step on all ranks once they have written a checkpoint. A second signal then
/// ends it at once, as does a checkpoint that takes minutes.
int launch_local_ranks(const LaunchOptions& options);

}  // namespace frostpipe
