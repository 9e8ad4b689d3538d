#pragma once
#include <vector>

namespace frostpipe {

class Communicator;

/// Returns the host of every rank, by rank, as numbers from 0 without gaps. Must be called by all ranks.
std::vector<int> hosts_of_ranks(Communicator& communicator);

}  // namespace frostpipe
