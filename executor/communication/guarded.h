#pragma once
#include <exception>
#include <string>

namespace frostpipe {

/// To be called where an exception is handled. This rank's own failures (RuntimeFailure, InvalidInput, InternalError,
/// no memory, no threads) go on as they are. Of c10d's a lost peer is the reason: gives whoever watches the ranks time
/// to name it, then throws PeerLost "rank 0: WHAT: ...".
[[noreturn]] void rethrow_from_c10d(int self, const std::string& what);

/// The result of `call`, which talks to other ranks by c10d. Throws as rethrow_from_c10d does.
template <typename Call>
auto guarded(int self, const std::string& what, Call call) {
  try {
    return call();
  } catch (const std::exception&) {
    rethrow_from_c10d(self, what);
  }
}

}  // namespace frostpipe
