#pragma once
#include <vector>

#include "plan/layout.h"
#include "profiles/cluster.h"
#include "simulator/cost_model.h"

namespace frostpipe {

/// The costs of sending an activation from the t tensor ranks of one mesh coordinate to those of another. `from_rank`
/// and `to_rank` are tensor rank 0 of the two.
class Messages {
 public:
  Messages(const Cluster& cluster, const ParallelLayout& layout)
      : cluster_(cluster), t_(layout.tensor_parallel_size), splits_tokens_(layout.sequence_parallel) {}

  /// Returns the cost of one message. `bytes` is the size of one tensor rank's activation; with sequence parallelism it
  /// counts only the rank's own tokens.
  TransferCost cost(int from_rank, int to_rank, Bytes bytes) const;
  /// Returns how long the message occupies the links that ranks share.
  std::vector<SharedOccupancy> shared(int from_rank, int to_rank, Bytes bytes) const;

 private:
  /// Returns whether each tensor rank sends a part to another node, where the parts are gathered, as the cluster may
  /// ask for. It does not with sequence parallelism, where each sends and receives its own tokens anyway.
  bool scatters(int from_rank, int to_rank) const;

  const Cluster& cluster_;
  int t_;
  bool splits_tokens_;
};

/// Returns the number of gradient reductions that leave a node at the same time, for the node with the most. A node has
/// one for each of its pipeline ranks with replicas on other nodes, times the number of tensor ranks, which is also the
/// result if none leaves a node.
int reductions_side_by_side(const Cluster& cluster, const ParallelLayout& layout);

/// Returns the all-reduce of these ranks as a segment.
Segment all_reduce_segment(const Cluster& cluster, std::vector<int> ranks, Bytes bytes, int side_by_side);

/// Returns the bytes of the gradients of a layer's experts on one rank. They are 0 without expert parallelism: these
/// gradients are then reduced with all others (reduced_gradient_bytes).
Bytes expert_gradient_bytes(const Phase& phase, const Model& model, int layer, DType dtype);

/// Returns the time of the all-reduce of `bytes` over the replicas with the same experts as the first: every
/// expert_parallel_size-th one of `replicas`, the ranks of a stage. The all-reduces of all experts run side by side.
Nanoseconds reduction_of_experts_ns(const Cluster& cluster, const Model& model, const ParallelLayout& layout,
                                    const std::vector<int>& replicas, Bytes bytes);

/// Returns the time of the all-reduce of the gradients of a stage's experts; 0 without expert parallelism.
Nanoseconds expert_reduction_ns(const Cluster& cluster, const Model& model, const Phase& phase, int stage, DType dtype);

/// The time of a trainable layer's last backward in an iteration, and the bytes of its gradient.
struct LayerGradient {
  Nanoseconds backward_ns = 0;
  Bytes bytes = 0;
};

/// Returns the all-reduce of 8 bytes for the gradient norm, over all ranks that train. Its collective_ranks hold tensor
/// rank 0 of each mesh coordinate. They are empty if there is only one, and the time is 0 if only one rank trains.
Segment gradient_norm_segment(const Cluster& cluster, const Phase& phase);

/// Returns how long a stage's gradient reduction lasts after the end of its last backward, if each layer's gradient is
/// reduced as soon as possible. `gradients` are in the order of the backward.
Nanoseconds exposed_reduction_ns(const Cluster& cluster, std::vector<int> ranks,
                                 const std::vector<LayerGradient>& gradients, int side_by_side);

}  // namespace frostpipe
