#pragma once
#include <string>
#include <vector>

#include "executor/elastic/membership.h"
#include "executor/elastic/rank_process.h"

namespace frostpipe {

// The launcher's side of a rendezvous round: it assigns ranks to the processes of the job and tells each process its
// rank.

/// Removes the processes that have ended, gives free logical ranks to spares (the lowest first), and numbers the ranks
/// in the order of their logical ranks. Returns a phrase for the launcher's message: "a spare takes the place", "3
/// ranks go on"; empty if no rank is left.
std::string assign_ranks(std::vector<RankProcess>& processes);

/// Connects every two ranks by a socket pair that only they hold, and tells each rank its place in the round. Fills in
/// the ranks and logical ranks of `info`. Throws RuntimeFailure if a socket cannot be made. If a rank dies meanwhile,
/// its peers notice it.
void announce(std::vector<RankProcess>& processes, RendezvousInfo info);

}  // namespace frostpipe
