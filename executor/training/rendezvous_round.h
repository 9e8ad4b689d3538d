#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "executor/cache/node_cache.h"
#include "executor/training/checkpoints/checkpoint_manager.h"
#include "executor/training/run_context.h"
#include "executor/training/training_session.h"

namespace frostpipe {

/// What this rank has from one rendezvous of the job to the next loss: its connections, and what talks over them.
///
/// All ranks connect() and open(); after a loss the survivors sever() and close(), and begin the next round with the
/// same object. The activations in the cache stay, and what slow disks are still writing for checkpoints is waited for
/// by nobody.
///
/// A rank is numbered by its round; a logical rank is the number that it, or whom it replaces, had in the first round,
/// and names the device of the cluster. Reports and checkpoints name logical ranks.
class RendezvousRound {
 public:
  /// `store_rendezvous`: of ranks that others have launched, else null; it outlives this object.
  RendezvousRound(const RunContext& run, StoreRendezvous* store_rendezvous)
      : run_(run), store_rendezvous_(store_rendezvous) {}

  /// Throws InvalidInput if the plan is for another number of ranks than were started, unless torchrun has left out
  /// those of lost hosts.
  void connect(const RendezvousInfo& info);
  /// `shards`: of the training data, one for each node. A session without layers, and a cache if a phase may use one.
  void open(const std::vector<std::vector<int>>& shards);
  /// Ends all connections, also of a round that was not opened.
  void sever();
  void close();

  /// A session without layers in the place of the present one.
  void renew_session();

  bool is_first() const { return communicator_->rank() == 0; }
  bool is_watched_by_launcher() const { return info_.self.watched_by_launcher; }
  /// Nodes of the job, of which some may be without ranks.
  int num_nodes() const;
  /// Ranks of the plan are not there.
  bool lacks_ranks() const;
  /// Logical ranks, by rank.
  const std::vector<int>& logical_ranks() const { return info_.logical_ranks; }
  Communicator& communicator() { return *communicator_; }
  bool has_session() const { return session_ != nullptr; }
  TrainingSession& session() { return *session_; }
  CollectLayers collect_layers();
  CheckpointManager& checkpoints() { return *checkpoints_; }
  const CheckpointFolder& checkpoint_folder() const { return checkpoint_folder_; }
  /// Null if no phase uses one.
  NodeCache* cache() { return cache_.get(); }
  /// What this rank has found in the cache so far.
  CacheCounts cache_counts() const { return cache_ ? cache_->view().counts() : CacheCounts{}; }
  /// Where the session's phase uses the cache: makes its frozen layers the boundary. Called by all ranks.
  void set_cache_boundary();

  /// A phase of this round as reports and checkpoints have it, and back: nothing if nobody has a logical rank that it
  /// needs.
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
  std::vector<int> nodes_of_logical_ranks_;  // of the first round's, where this process was in it
  int num_nodes_ = 1;
  CheckpointFolder checkpoint_folder_;
  std::unique_ptr<NodeCache> cache_;
  std::unique_ptr<TrainingSession> session_;
  std::unique_ptr<CheckpointManager> checkpoints_;
  std::unique_ptr<CheckpointManager> given_up_checkpoints_;  // of the round before
};

}  // namespace frostpipe
