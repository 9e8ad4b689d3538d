#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <vector>

#include "executor/models/layer_state.h"
#include "executor/runtime/rank_parts.h"
#include "plan/plan.h"

namespace frostpipe {

/// The result of a rank's part of one iteration.
struct IterationResult {
  /// The mini-batch's mean loss per sample or, if tokens have labels, per labelled token (Samples::loss_terms); 0 on
  /// ranks without trainable layers.
  double loss = 0;
  /// Squared L2 norm of each block's reduced gradients before clipping; empty on ranks without trainable layers.
  std::vector<double> block_square_sums;
};

/// The optimizer step at the end of an iteration.
struct IterationUpdate {
  UpdateRule rule;           // clipping replaces its gradient_divisor
  double gradient_clip = 0;  // maximum norm; 0 = no clipping
  bool applied = true;       // if false, OPTIMIZER_STEP updates nothing, and the caller can inspect the gradients
};

/// An OPTIMIZER_STEP that lacks only the gradient norm, because a peer was lost during its all-reduce. Other ranks may
/// have the norm and have updated their weights.
struct InterruptedUpdate {
  UpdateRule rule;
  double gradient_clip = 0;
};

/// Updates `layers`, whose gradients must be unchanged, with bitwise the same result as if the norm (before clipping)
/// had arrived.
void complete_update(const InterruptedUpdate& interrupted, double gradient_norm, std::map<int, LayerState>& layers);

/// REDUCE_GRAD and OPTIMIZER_STEP of a rank's stages in one iteration. The last REDUCE_GRAD also adds the gradients of
/// tied embeddings; the first OPTIMIZER_STEP all-reduces the gradient norm over all ranks that train.
class GradientStep {
 public:
  GradientStep(const Phase& phase, int rank, const RankParts& parts, const IterationUpdate& update);

  void reduce(int stage);
  void update(int stage);
  /// True if every trainable stage of the rank has been updated.
  bool is_done() const { return num_updated_ == num_stages_; }
  /// Called after update() has thrown PeerLost: returns this rank's update if it lacks only the gradient norm. Returns
  /// nothing on a GPU, where data of other ranks may be missing too.
  std::optional<InterruptedUpdate> interrupted() const;
  /// Returns the gradient norm before clipping, the same on all ranks. Only on a CPU, after the first update().
  double gradient_norm() const;
  /// Starts to copy the figures of result() to the host. Call it after the first update(), and again after replaying
  /// captured work.
  void bring_result();
  /// Returns the result: empty if update() was not called, otherwise valid when the device has completed
  /// bring_result(). Throws RuntimeFailure if the gradient norm is not finite. On the CPU, update() throws it before
  /// anything changes.
  IterationResult result() const;

 private:
  /// Returns the gradients that may be nonzero in this iteration, for each trainable layer of the stage.
  std::map<int, TouchedGradients> touched_gradients(int stage) const;
  /// Sums gradients of whole parameters over the tensor ranks. Needed with sequence parallelism, with which each rank
  /// has only the contribution of its own tokens.
  void sum_over_tensor_ranks(int stage);
  /// Replaces the tied gradients of the first and the last stage by their sum.
  void reduce_tied();
  /// Returns the gradients of a layer's tied table, or of this tensor rank's rows of it.
  at::Tensor tied_gradient(int layer) const;
  /// Returns float64 on the device: [0, blocks) squared norms per block, then that of all other layers, then the loss.
  at::Tensor own_figures();
  void agree_on_norm();
  /// Returns an undefined tensor if no stage of this rank has a loss.
  at::Tensor loss() const;
  /// Returns the squared norm that a rank of the first replica contributes for a layer. Parameters that every tensor
  /// rank holds whole count only on the first tensor rank, and tied ones only in the embedding.
  at::Tensor square_sum(int layer, const TouchedGradients& touched) const;

  const Phase& phase_;
  int rank_;
  MeshCoordinate coordinate_;
  bool is_first_replica_;  // first of those that are left
  const RankParts& parts_;
  IterationUpdate update_;
  int num_stages_ = 0, num_reduced_ = 0, num_updated_ = 0;  // numbers of trainable stages
  std::map<int, TouchedGradients> gradients_;               // by layer, from REDUCE_GRAD on
  at::Tensor reduced_loss_;                                 // over the replicas, unless it is reduced with the norm
  bool agrees_ = false;                                     // the sum of figures_ is in progress
  at::Tensor figures_, host_figures_;                       // own_figures() summed over all ranks, from the first
                                                            // update() on
};

}  // namespace frostpipe
