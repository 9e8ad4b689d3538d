#pragma once
#include <chrono>
#include <string>

#include "executor/elastic/job_environment.h"

namespace c10d {
class TCPStore;
}

namespace frostpipe {

// Ranks that our launcher did not start, on one host or several, tell each other at the store that they are there. One
// that cannot take part, because something is wrong with what it was given, says so there: the others would wait for it
// for minutes.

/// What a rank says when it comes.
struct Arrival {
  bool shares_device = false;  // with another rank
  std::string trouble;         // why it cannot take part, a sentence; "" if it can
};

/// RankEnvironment::attempt: rank 0's random number, which it tells to whoever comes once it is at meet_at_store(). The
/// others wait for that. torchrun's own count of restarts differs from host to host. Throws RuntimeFailure if rank 0
/// has not come within `limit`, or if the others have met already (close_arrivals()).
int find_attempt(const RankEnvironment& self, c10d::TCPStore& store,
                 std::chrono::milliseconds limit = std::chrono::minutes(5));

/// Called by all ranks of an attempt, each with its own; waits for all of them, some of which may have much to load.
/// After 10 s a line on stderr says for whom. Whether any shares its device. Throws InvalidInput with the trouble of
/// the lowest rank that has any, on all ranks alike, and RuntimeFailure that names the ranks that have not come within
/// `limit`.
bool meet_at_store(const RankEnvironment& self, c10d::TCPStore& store, const Arrival& own,
                   std::chrono::milliseconds limit = std::chrono::minutes(5));

/// The same of a later round, in which ranks have other numbers: they know the attempt, and nobody else is told it.
bool meet_again_at_store(const RankEnvironment& self, c10d::TCPStore& store, const Arrival& own,
                         std::chrono::milliseconds limit);

/// All ranks of the job have met: whoever comes from now on, by find_attempt(), hears that it is too late. For a store
/// that ends with the job.
void close_arrivals(c10d::TCPStore& store);

/// In place of connecting: tells `trouble` to the other ranks, with the name of this host where there may be several,
/// and throws InvalidInput as they do; where they have not come within a minute, with this rank's own.
[[noreturn]] void meet_in_trouble(const RankEnvironment& self, const std::string& trouble);

}  // namespace frostpipe
