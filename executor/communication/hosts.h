#pragma once
#include <vector>

namespace frostpipe {

class Communicator;

/// The hosts that the ranks run on, by rank, numbered from 0 without gaps. Called by all ranks.
std::vector<int> hosts_of_ranks(Communicator& communicator);

}  // namespace frostpipe
