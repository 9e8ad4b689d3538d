#pragma once
#include <string>

#include "executor/elastic/job_environment.h"

namespace c10d {
class TCPStore;
}

namespace frostpipe {

/// Called by all ranks, with a store at which all meet. The first rank of each host opens a port at its address that
/// the system chooses, as Gloo will, and connects to those of the other hosts: what is in the way between two hosts is
/// then said in a sentence, and said by all ranks. Throws RuntimeFailure.
void require_paths_between_hosts(const RankEnvironment& self, const std::string& address, c10d::TCPStore& store);

}  // namespace frostpipe
