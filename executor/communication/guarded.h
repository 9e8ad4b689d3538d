#pragma once
#include <exception>
#include <string>

namespace frostpipe {

/// Rethrows the exception that is being handled. Failures of this rank itself (RuntimeFailure, InvalidInput,
/// InternalError, no memory, no threads) are rethrown unchanged, and errors of CUDA or of NCCL's use as RuntimeFailure
/// "rank 0: WHAT: ...". For every other exception, which c10d throws because a peer is lost, it first gives the
/// heartbeat time to name the lost rank and then throws PeerLost "rank 0: WHAT: ...".
[[noreturn]] void rethrow_from_c10d(int self, const std::string& what);

/// Returns the result of `call`, which communicates by c10d. Throws as rethrow_from_c10d() does.
template <typename Call>
auto guarded(int self, const std::string& what, Call call) {
  try {
    return call();
  } catch (const std::exception&) {
    rethrow_from_c10d(self, what);
  }
}

}  // namespace frostpipe
