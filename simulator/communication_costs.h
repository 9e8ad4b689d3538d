#pragma once
#include <vector>

#include "plan/layout.h"
#include "profiles/cluster.h"
#include "simulator/cost_model.h"

namespace frostpipe {

/// Costs of sending an activation from the t tensor ranks of one mesh coordinate to those of another. `from_rank` and
/// `to_rank` are tensor rank 0 of the two.
class Messages {
 public:
  Messages(const Cluster& cluster, const ParallelLayout& layout)
      : cluster_(cluster), t_(layout.tensor_parallel_size), splits_tokens_(layout.sequence_parallel) {}

  /// `bytes` is the size of one tensor rank's activation; with sequence parallelism this is only its own tokens.
  TransferCost cost(int from_rank, int to_rank, Bytes bytes) const;
  /// Returns how long the message occupies the links that ranks share.
  std::vector<SharedOccupancy> shared(int from_rank, int to_rank, Bytes bytes) const;

 private:
  /// Returns whether each tensor rank sends a part to another node, where the parts are gathered. Not with sequence
  /// parallelism, where each sends and receives its own tokens anyway.
  bool scatters(int from_rank, int to_rank) const;

  const Cluster& cluster_;
  int t_;
  bool splits_tokens_;
};

/// Returns the maximum over nodes of the gradient reductions that leave a node at the same time. A node has one for
/// each of its stages with replicas on other nodes and for each of their tensor ranks.
int reductions_side_by_side(const Cluster& cluster, const ParallelLayout& layout);

/// Returns the all-reduce of these ranks as a segment.
Segment all_reduce_segment(const Cluster& cluster, std::vector<int> ranks, Bytes bytes, int side_by_side);

/// Time of the all-reduce of the gradients of a stage's experts over the replicas with the same experts, every
/// expert_parallel_size-th one. 0 without expert parallelism: these gradients are then reduced with all others.
Nanoseconds expert_reduction_ns(const Cluster& cluster, const Model& model, const Phase& phase, int stage, DType dtype);

/// A trainable layer in the last backward.
struct LayerGradient {
  Nanoseconds backward_ns = 0;
  Bytes bytes = 0;
};

/// The all-reduce of 8 bytes for the gradient norm over all ranks that train. collective_ranks holds tensor rank 0 of
/// each mesh coordinate; it is empty if there is only one, and the time is 0 if no other rank trains.
Segment gradient_norm_segment(const Cluster& cluster, const Phase& phase);

/// Returns how long a stage's gradient reduction takes beyond its last backward, if each layer's gradient is reduced as
/// soon as possible. `gradients` are in the order of the backward.
Nanoseconds exposed_reduction_ns(const Cluster& cluster, std::vector<int> ranks,
                                 const std::vector<LayerGradient>& gradients, int side_by_side);

}  // namespace frostpipe
