#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "executor/cache/node_cache.h"
#include "executor/training/checkpoints/checkpoint_manager.h"
#include "executor/training/run_context.h"
#include "executor/training/training_session.h"

namespace frostpipe {

/// The objects that this rank has for one rendezvous round: its connections, and everything that uses them.
///
/// All ranks connect() and open(). After a loss the survivors call close_connections() and close(), and begin the next
/// round with the same object. The activations in the cache are kept. No rank waits for checkpoints that a slow disk is
/// still writing.
///
/// Ranks are numbered by round. A logical rank is the rank that a process, or the one that it replaces, had in the
/// first round; it identifies the device of the cluster. Reports and checkpoints name logical ranks.
class RendezvousRound {
 public:
  /// `store_rendezvous` is for ranks that another launcher has started, else null; it must outlive this object.
  RendezvousRound(const RunContext& run, StoreRendezvous* store_rendezvous)
      : run_(run), store_rendezvous_(store_rendezvous) {}

  /// Connects the ranks and finds their nodes. Throws InvalidInput if, in the first round, the plan has another number
  /// of ranks than were started, unless torchrun has left out those of lost hosts.
  void connect(const RendezvousInfo& info);
  /// Makes a session without layers, a checkpoint manager, and a cache if a phase may use one. `shards` are the parts
  /// of the training data, one per node.
  void open(const std::vector<std::vector<int>>& shards);
  /// Closes all connections and abandons the checkpoint in progress, even if the round was not opened.
  void close_connections();
  /// Releases the session and the communicator.
  void close();

  /// Replaces the session by one without layers.
  void renew_session();

  bool is_first() const { return communicator_->rank() == 0; }
  bool is_watched_by_launcher() const { return info_.self.watched_by_launcher; }
  /// Returns the number of nodes in the job, including those without ranks.
  int num_nodes() const;
  /// True if this round has fewer ranks than the plan.
  bool lacks_ranks() const;
  /// Returns the logical ranks, by rank.
  const std::vector<int>& logical_ranks() const { return info_.logical_ranks; }
  Communicator& communicator() { return *communicator_; }
  bool has_session() const { return session_ != nullptr; }
  TrainingSession& session() { return *session_; }
  CollectLayers collect_layers();
  CheckpointManager& checkpoints() { return *checkpoints_; }
  const CheckpointFolder& checkpoint_folder() const { return checkpoint_folder_; }
  /// Returns the cache; null if no phase uses one.
  NodeCache* cache() { return cache_.get(); }
  /// Returns the counts of this rank's cache look-ups and writes so far.
  CacheCounts cache_counts() const { return cache_ ? cache_->view().counts() : CacheCounts{}; }
  /// Makes the frozen layers of the session's phase the cache boundary, if it uses the cache. Must be called by all
  /// ranks.
  void set_cache_boundary();

  /// Convert a phase of this round to the form of reports and checkpoints, and back. with_ranks() returns nothing if a
  /// logical rank of the phase's layout has no process in this round.
  Phase with_logical_ranks(const Phase& phase) const;
  std::optional<Phase> with_ranks(const Phase& phase) const;

 private:
  void find_nodes();
  void open_cache(const at::TensorOptions& compute, const std::vector<std::vector<int>>& shards);

  const RunContext& run_;
  StoreRendezvous* store_rendezvous_;
  RendezvousInfo info_;
  std::unique_ptr<Communicator> communicator_;
  std::vector<int> nodes_;                   // by rank
  std::vector<int> nodes_of_logical_ranks_;  // nodes in the first round; empty if this process was not in it
  int num_nodes_ = 1;
  CheckpointFolder checkpoint_folder_;
  std::unique_ptr<NodeCache> cache_;
  std::unique_ptr<TrainingSession> session_;
  std::unique_ptr<CheckpointManager> checkpoints_;
  std::unique_ptr<CheckpointManager> given_up_checkpoints_;  // of the previous round
};

}  // namespace frostpipe
