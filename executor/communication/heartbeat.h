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

/// Returns the key of an entry in the job's store, in the namespace of this attempt.
std::string store_key(const RankEnvironment& self, const std::string& name);

/// Connects to the job's rendezvous store at store_address(). Rank 0 hosts the store there if `may_host` is set and no
/// external process (torchrun) hosts it. All others wait for it as long as `limits` say, and then throw RuntimeFailure.
c10::intrusive_ptr<c10d::TCPStore> connect_store(const RankEnvironment& self, bool may_host,
                                                 const ConnectLimits& limits = {});

/// The state of a rank's heartbeat, as this process has seen it last.
struct Pulse {
  std::string status;               // a number that counts up, or its last status; "" before the first beat
  std::chrono::milliseconds age{};  // time since the last change of `status`, by this process's clock
};

/// The heartbeat of a rank that another launcher (torchrun, say) has started. A thread with a store connection of its
/// own reports this rank once a second, so that neither computation nor a blocked collective delays it. The thread also
/// watches the other ranks and ends this process with a message when one falls silent (until watch_round() is called),
/// or when the store is gone or silent (unless finish() was called).
class Heartbeat {
 public:
  /// The last status of a rank that has ended well, and of one that has failed by itself.
  static constexpr const char* kDone = "done";
  static constexpr const char* kFailed = "failed";

  explicit Heartbeat(const RankEnvironment& self);
  /// Reports the last status.
  ~Heartbeat();
  /// Sets the status that the destructor reports. Default: kDone.
  void set_last_status(const std::string& status);
  /// Declares this rank's part of the run done: its last status is kDone, and the loss of the store is no failure from
  /// now on.
  void finish();

  /// From now on a silent rank no longer ends this process. Instead, until end_round(), a silent or failed rank among
  /// `ranks` raises an alarm: all ranks of the round see the store's entry `alarm` within a second, and call `on_loss`
  /// once, from a thread of this object, while the heartbeat goes on. If `on_loss` throws, or takes longer than
  /// kStopLimitSeconds, the process ends with a message. `ranks` are numbered as when the heartbeat was constructed.
  void watch_round(const std::string& alarm, std::vector<int> ranks, std::function<void()> on_loss);
  /// Ends the round. When it returns, on_loss is not running and will not be called.
  void end_round();
  /// Returns the pulses of all ranks, by rank.
  std::vector<Pulse> pulses() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Waits, after a connection to a peer has broken, until the heartbeat has had time to name the silent rank and to end
/// this process with its message. Returns if no heartbeat may end the process (frostpipe's launcher watches the ranks,
/// or survivors go on), or if no rank is silent (then the peer ended with an error of its own).
void wait_for_failed_peer();

}  // namespace frostpipe
