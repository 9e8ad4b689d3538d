#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <vector>

#include "executor/models/layer_state.h"
#include "executor/runtime/rank_parts.h"
#include "plan/plan.h"

namespace frostpipe {

/// What a rank's part of one iteration brought.
struct IterationResult {
  /// Mean over the mini-batch's samples; 0 on ranks that train nothing.
  double loss = 0;
  /// Squared L2 norm of each block's reduced gradients before clipping; empty on ranks that train nothing.
  std::vector<double> block_square_sums;
};

/// The update that ends an iteration.
struct IterationUpdate {
  UpdateRule rule;           // its gradient_divisor is replaced by what clipping asks for
  double gradient_clip = 0;  // to this norm; 0 = off
  bool applied = true;       // else OPTIMIZER_STEP does nothing: gradients stay for the caller to look at
};

/// An OPTIMIZER_STEP that lacks nothing but the gradient norm: a peer was lost while all ranks that train agreed on it.
/// Others may have the norm, and have done their updates.
struct InterruptedUpdate {
  UpdateRule rule;
  double gradient_clip = 0;
};

/// Updates the rank's `layers`, whose gradients are as they were, to the bit as if the norm, before clipping, had come.
void complete_update(const InterruptedUpdate& interrupted, double gradient_norm, std::map<int, LayerState>& layers);

/// REDUCE_GRAD and OPTIMIZER_STEP of a rank's stages in one iteration. The last REDUCE_GRAD also adds the gradients of
/// tied embeddings; the first OPTIMIZER_STEP agrees on the gradient norm with all ranks that train.
class GradientStep {
 public:
  GradientStep(const Phase& phase, int rank, const RankParts& parts, const IterationUpdate& update);

  void reduce(int stage);
  void update(int stage);
  /// Every stage of the rank that trains is updated.
  bool is_done() const { return num_updated_ == num_stages_; }
  /// Where the first update() has thrown PeerLost: this rank's updates, if all that they lack is the norm. On the CPU
  /// alone: elsewhere what others were to send may not have come.
  std::optional<InterruptedUpdate> interrupted() const;
  /// That all ranks have agreed on, before clipping: on the CPU, after the first update().
  double gradient_norm() const;
  /// Copies what result() tells to the host, without waiting: after the first update(), and again when work that was
  /// captured of it has been replayed.
  void bring_result();
  /// Empty where there was no update(); else to be called when the device has done bring_result(). Throws
  /// RuntimeFailure where the gradient norm is not finite. On the CPU update() does, before it changes anything.
  IterationResult result() const;

 private:
  /// What may have a gradient in this iteration, of each layer of the stage that trains.
  std::map<int, TouchedGradients> touched_gradients(int stage) const;
  /// With sequence parallelism each tensor rank has what its own tokens add to the gradients of whole parameters.
  void sum_over_tensor_ranks(int stage);
  /// Gives both ends of the pipeline the sum of their tied gradients.
  void reduce_tied();
  /// The tied part of a layer's gradients; tensor ranks share it.
  at::Tensor tied_gradient(int layer) const;
  /// [0, blocks): squares of the gradients' values per block; then of all other layers; last: the loss. Float64, on the
  /// device.
  at::Tensor own_figures();
  void agree_on_norm();
  /// Undefined where no stage of this rank has one.
  at::Tensor loss() const;
  /// Squares of what this rank stands for: the first replica for the others, whose gradients are equal, and of tensor
  /// ranks the first for what all of them have.
  at::Tensor square_sum(int layer, const TouchedGradients& touched) const;

  const Phase& phase_;
  int rank_;
  MeshCoordinate coordinate_;
  bool is_first_replica_;  // of those that are left
  const RankParts& parts_;
  IterationUpdate update_;
  int num_stages_ = 0, num_reduced_ = 0, num_updated_ = 0;  // of those that train
  std::map<int, TouchedGradients> gradients_;               // by layer, from REDUCE_GRAD on
  at::Tensor reduced_loss_;                                 // over the replicas, where it is not reduced with the norm
  bool agrees_ = false;                                     // the sum of figures_ has begun, and not ended
  at::Tensor figures_, host_figures_;                       // from the first update() on: own_figures(), of all ranks
};

}  // namespace frostpipe
