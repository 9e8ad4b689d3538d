#pragma once
#include <string>
#include <vector>

#include "executor/elastic/membership.h"
#include "executor/elastic/rank_process.h"

namespace frostpipe {

// A rendezvous round of the job from the launcher's side: who is who among its processes, and what each of them is
// told.

/// Forgets the processes that have ended, gives spares the free logical ranks (the lowest first), and numbers the ranks
/// in the order of their logical ranks. Says who goes on: "a spare takes the place", "3 ranks go on"; empty if nobody
/// is left.
std::string assign_ranks(std::vector<RankProcess>& processes);

/// Connects every two ranks by a pair of sockets, of which each gets its end and nobody else has one, and tells each
/// rank who it is. `info`: its ranks and logical ranks are filled in here. Throws RuntimeFailure where no socket can
/// be made. A rank that dies meanwhile is found by its peers.
void announce(std::vector<RankProcess>& processes, RendezvousInfo info);

}  // namespace frostpipe
