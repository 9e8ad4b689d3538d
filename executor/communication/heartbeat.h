#pragma once
#include <c10/util/intrusive_ptr.h>

#include <memory>
#include <string>

#include "executor/elastic/addresses.h"
#include "executor/elastic/membership.h"

namespace c10d {
class TCPStore;
}

namespace frostpipe {

/// Name of an entry in the job's store: this attempt's own.
std::string store_key(const RankEnvironment& self, const std::string& name);

/// Connects to the job's rendezvous store, at store_address(); rank 0 hosts it, there alone, if nobody outside does and
/// `may_host`. The others wait until it is there, as long as `limits` say.
c10::intrusive_ptr<c10d::TCPStore> connect_store(const RankEnvironment& self, bool may_host,
                                                 const ConnectLimits& limits = {});

/// For jobs that no launcher of ours watches (torchrun's, say). Reports this rank to the rendezvous store from a thread
/// with a connection of its own, so that neither compute nor a blocked collective keeps it silent, watches the other
/// ranks, and ends this process with a message when one is silent.
class Heartbeat {
 public:
  explicit Heartbeat(const RankEnvironment& self);
  ~Heartbeat();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Called where a connection to a peer has broken: gives the watch time to name the rank that fell silent, and to end
/// this process with its message. Returns where our launcher does that, and where no rank is silent (then the peer
/// ended by an error of its own).
void wait_for_failed_peer();

}  // namespace frostpipe
