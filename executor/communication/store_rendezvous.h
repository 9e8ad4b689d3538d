#pragma once
#include <c10/util/intrusive_ptr.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "executor/communication/arrival.h"
#include "executor/elastic/membership.h"

namespace c10d {
class TCPStore;
}

namespace frostpipe {

class Heartbeat;

/// The rendezvous rounds of ranks that somebody else has launched: at a store, by themselves. Store and heartbeat
/// outlive the connections of a round.
///
/// Whoever loses a connection, or whose heartbeat finds a rank silent, raises an alarm; all ranks of the round hear it
/// within a second, give up their connections (watch()) and stop(). Rank 0, which hosts the store, waits until every
/// rank has stopped or is silent, and writes down who is left: those are the next round's ranks, in their old order.
/// Whoever is not among them ends, as do all where rank 0 is lost, a rank has failed by itself, or no restart is left.
class StoreRendezvous final : public Rendezvous {
 public:
  /// `first`: the first round. `max_restarts`: rounds that may follow it. Connects to nothing yet.
  StoreRendezvous(RendezvousInfo first, int max_restarts);
  /// Where there may be other rounds, the others hear that this rank has failed, unless finish() was called.
  ~StoreRendezvous() override;

  /// Waits for rank 0 while that is at work on the round, and 20 s once it has stopped. Throws RuntimeFailure, on all
  /// ranks alike, with the reason why there is none; on a rank that the others go on without, with that.
  std::optional<RendezvousInfo> next_round() override;
  /// From watch() on: a loss before all have met for the first time ends the job.
  bool may_rendezvous_again() const override;
  void stop(int generation) override;
  /// This rank has done its part of the run.
  void finish();

  // For Communicator.

  /// Connects to the store and starts the heartbeat, which ends the process on a loss until watch(); in later rounds
  /// both are there. The round as this rank sees it, with the attempt.
  RankEnvironment connect();
  c10::intrusive_ptr<c10d::TCPStore> store() const;
  bool is_first_round() const;
  /// meet_at_store(), in later rounds meet_again_at_store(). Throws PeerLost where a rank that was left after a loss
  /// does not come in time.
  bool meet(const Arrival& own);
  /// All ranks are connected. Where there may be another round, a loss from now on calls `give_up_connections`, from
  /// another thread.
  void watch(std::function<void()> give_up_connections);
  /// The round's connections are gone: give_up_connections is not being called, and will not be.
  void end_watch();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace frostpipe
