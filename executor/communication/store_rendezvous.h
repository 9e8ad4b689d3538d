#pragma once
#include <c10/util/intrusive_ptr.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "executor/communication/registration.h"
#include "executor/elastic/membership.h"

namespace c10d {
class TCPStore;
}

namespace frostpipe {

class Heartbeat;

/// The rendezvous rounds of ranks that another launcher has started, without its help: they use a store. The store and
/// the heartbeat outlive the connections of a round.
///
/// A rank that loses a connection, or whose heartbeat finds a silent rank, raises an alarm. All ranks of the round hear
/// it within a second, give up their connections (watch()) and stop(). Rank 0, which hosts the store, waits until every
/// rank has stopped or is silent, and then stores the list of survivors, which are the ranks of the next round in their
/// old order. All other ranks end. All ranks end if rank 0 is lost, a rank has failed by itself, or no restart is left.
class StoreRendezvous final : public Rendezvous {
 public:
  /// `first` is the first round; at most `max_restarts` rounds follow it. Does not connect yet.
  StoreRendezvous(RendezvousInfo first, int max_restarts);
  /// Tells the other ranks, if another round is possible, that this rank has failed, unless finish() was called.
  ~StoreRendezvous() override;

  /// Waits for rank 0's list of survivors: without limit while rank 0 still works on the round, and 20 s after it has
  /// stopped. Throws RuntimeFailure with the reason on all ranks if there is no next round, and on a rank that is not
  /// among the survivors.
  std::optional<RendezvousInfo> next_round() override;
  /// True from watch() on: a loss before all ranks have connected for the first time ends the job.
  bool may_rendezvous_again() const override;
  void stop(int generation) override;
  /// Declares this rank's part of the run done.
  void finish();

  // The rest is for Communicator.

  /// Connects to the store and starts the heartbeat if that has not been done in an earlier round. Until watch(), a
  /// loss ends the process. Returns the environment of this round, with its attempt.
  RankEnvironment connect();
  c10::intrusive_ptr<c10d::TCPStore> store() const;
  bool is_first_round() const;
  /// Calls register_at_store() or, in later rounds, register_again_at_store(). Throws PeerLost if a survivor does not
  /// register in time.
  void register_rank();
  /// Call it when all ranks are connected. If another round is possible, a loss from now on calls `give_up_connections`
  /// from another thread.
  void watch(std::function<void()> give_up_connections);
  /// Ends watch(). When it returns, give_up_connections is not running and will not be called.
  void end_watch();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace frostpipe
