#pragma once
#include <vector>

#include "plan/layout.h"
#include "profiles/cluster.h"
#include "simulator/cost_model.h"

namespace frostpipe {

/// Prices of an activation from the t tensor ranks of one mesh coordinate to those of another, which differ from
/// `from_rank` and `to_rank` by the same offset.
class Messages {
 public:
  Messages(const Cluster& cluster, const ParallelLayout& layout)
      : cluster_(cluster), t_(layout.tensor_parallel_size), splits_tokens_(layout.sequence_parallel) {}

  /// `bytes`: of one tensor rank's activation, which with sequence parallelism has its tokens alone.
  TransferCost cost(int from_rank, int to_rank, Bytes bytes) const;
  /// What it occupies of the links that ranks share.
  std::vector<SharedOccupancy> shared(int from_rank, int to_rank, Bytes bytes) const;

 private:
  /// Between nodes each tensor rank sends a part, and the receivers gather them; with sequence parallelism each sends
  /// and receives its own tokens anyway.
  bool scatters(int from_rank, int to_rank) const;

  const Cluster& cluster_;
  int t_;
  bool splits_tokens_;
};

/// Most gradient reductions that leave one node at the same time: every stage there has one for each of its tensor
/// ranks.
int reductions_side_by_side(const Cluster& cluster, const ParallelLayout& layout);

/// An all-reduce of these ranks.
Segment all_reduce_segment(const Cluster& cluster, std::vector<int> ranks, Bytes bytes, int side_by_side);

/// All-reduce of the gradients of a stage's experts over the replicas that hold the same ones, every
/// expert_parallel_size-th; 0 where replicas do not share experts out: they are among all gradients then.
Nanoseconds expert_reduction_ns(const Cluster& cluster, const Model& model, const Phase& phase, int stage, DType dtype);

/// One trainable layer in the last backward.
struct LayerGradient {
  Nanoseconds backward_ns = 0;
  Bytes bytes = 0;
};

/// The sum of 8 bytes for the gradient norm, of all ranks that have something to train; those meet that stand for their
/// tensor ranks. No ranks where one meets its own tensor ranks alone, and no time where there is nobody else.
Segment gradient_norm_segment(const Cluster& cluster, const Phase& phase);

/// What is left of a stage's reduction after its last backward where every layer's goes as soon as it can; layers in
/// the order of the backward.
Nanoseconds exposed_reduction_ns(const Cluster& cluster, std::vector<int> ranks,
                                 const std::vector<LayerGradient>& gradients, int side_by_side);

}  // namespace frostpipe
