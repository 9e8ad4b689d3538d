#pragma once
#include <chrono>
#include <string>

#include "executor/elastic/job_environment.h"

namespace c10d {
class TCPStore;
}

namespace frostpipe {

// Ranks that another launcher (torchrun, say) has started register at the rendezvous store, on one host or on several.
// A rank whose input is wrong registers the reason: without it the others would wait for that rank until their timeout.

/// Returns RankEnvironment::attempt, a random number that rank 0 draws. The other ranks ask for it at the store and
/// wait until rank 0 answers from register_at_store(). torchrun's own restart count cannot serve, because it differs
/// from host to host. Throws RuntimeFailure if rank 0 has not answered within `limit`, or after close_registration().
int find_attempt(const RankEnvironment& self, c10d::TCPStore& store,
                 std::chrono::milliseconds limit = std::chrono::minutes(5));

/// Registers this rank, or `failure`, a sentence that says why it cannot take part, and waits until all ranks of the
/// attempt have registered; all of them must call it. After 10 s a line on stderr names the missing ranks. If some
/// ranks registered a failure, all ranks throw InvalidInput with that of the lowest of them. Throws RuntimeFailure that
/// names the ranks that have not registered within `limit`.
void register_at_store(const RankEnvironment& self, c10d::TCPStore& store, const std::string& failure = "",
                       std::chrono::milliseconds limit = std::chrono::minutes(5));

/// Does the same for a later rendezvous round, in which ranks may have new numbers. All of them know the attempt
/// already, so rank 0 answers no requests for it.
void register_again_at_store(const RankEnvironment& self, c10d::TCPStore& store, std::chrono::milliseconds limit);

/// Closes the registration after all ranks have registered: find_attempt() of a later rank throws. Required only for a
/// store that ends with the job.
void close_registration(c10d::TCPStore& store);

/// Registers why this rank cannot take part, instead of connecting: stores `failure`, with this host's name if there
/// may be several hosts, and throws InvalidInput as the other ranks do. If they have not registered within a minute,
/// throws InvalidInput with this rank's own failure.
[[noreturn]] void register_failure(const RankEnvironment& self, const std::string& failure);

}  // namespace frostpipe
