#pragma once
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

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

/// What a rank's heartbeat has said last.
struct Pulse {
  std::string word;                 // a number that counts up, or what it said at its end; "" before the first
  std::chrono::milliseconds age{};  // since it came, as this process has seen it
};

/// For jobs that no launcher of ours watches (torchrun's, say). Reports this rank to the rendezvous store from a thread
/// with a connection of its own, so that neither compute nor a blocked collective keeps it silent, watches the other
/// ranks, and ends this process with a message when one is silent. Where the store is gone or silent it always does.
class Heartbeat {
 public:
  /// The last word of a rank that has ended well, and of one that has failed by itself.
  static constexpr const char* kDone = "done";
  static constexpr const char* kFailed = "failed";

  explicit Heartbeat(const RankEnvironment& self);
  /// Says the last word.
  ~Heartbeat();
  /// kDone unless this says otherwise.
  void set_last_word(const std::string& word);
  /// This rank has done its part. Its last word is kDone, and a store that is gone or silent is no failure from now on.
  void finish();

  /// From now on a silent rank ends no process. Until end_round() it raises the alarm instead, as does one that has
  /// failed: all ranks of the round find the store's entry `alarm` within a second, and `on_loss` is called once, from
  /// a thread of this object, while this rank goes on reporting. Where it throws, or takes longer than others wait for
  /// a rank to stop, this process ends with a message. `ranks` are numbered as when the heartbeat began.
  void watch_round(const std::string& alarm, std::vector<int> ranks, std::function<void()> on_loss);
  /// Returns when on_loss is not being called, and will not be.
  void end_round();
  /// Of every rank, by number.
  std::vector<Pulse> pulses() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Called where a connection to a peer has broken: gives the watch time to name the rank that fell silent, and to end
/// this process with its message. Returns where the watch does not do that (our launcher does, or the survivors go on),
/// and where no rank is silent (then the peer ended by an error of its own).
void wait_for_failed_peer();

}  // namespace frostpipe
