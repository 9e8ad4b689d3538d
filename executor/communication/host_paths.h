#pragma once
#include <string>

#include "executor/elastic/job_environment.h"

namespace c10d {
class TCPStore;
}

namespace frostpipe {

/// Checks the network paths between hosts. A blocked path is reported in one sentence on all ranks. Must be called by
/// all ranks. Every rank listens at its address on a port that the system chooses, as Gloo will; the first rank of each
/// host connects to the first ranks of the other hosts. Throws RuntimeFailure.
void require_paths_between_hosts(const RankEnvironment& self, const std::string& address, c10d::TCPStore& store);

}  // namespace frostpipe
