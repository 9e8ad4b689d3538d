#pragma once
#include <string>

#include "executor/elastic/job_environment.h"

namespace c10d {
class TCPStore;
}

namespace frostpipe {

/// Called by all ranks, with a store at which all meet. Every rank opens a port at its address that the system chooses,
/// as Gloo will; the first rank of each host connects to those of the other hosts' first ranks. What is in the way
/// between two hosts is then said in a sentence, and said by all ranks. Throws RuntimeFailure.
void require_paths_between_hosts(const RankEnvironment& self, const std::string& address, c10d::TCPStore& store);

}  // namespace frostpipe
