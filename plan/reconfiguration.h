#pragma once
#include <vector>

#include "plan/plan.h"

namespace frostpipe {

/// One layer's state copied between two ranks. With moments only if the layer still trains.
struct TensorMove {
  int layer = 0;
  int from_rank = 0;
  int to_rank = 0;
  bool with_moments = false;
  Bytes bytes = 0;
  bool operator==(const TensorMove&) const = default;
};

/// What changes between two phases, as a value: computed here, priced by the simulator, carried out by the executor.
struct Reconfiguration {
  int first_trainable_before = 0;
  int first_trainable_after = 0;
  /// Layers whose gradients are dropped and whose moments are offloaded (kept in host memory, not lost).
  std::vector<int> newly_frozen;
  /// In ascending (layer, to_rank) order; sources are spread over the ranks that hold the layer.
  std::vector<TensorMove> moves;
  /// Process groups must be rebuilt: the layout is another one, or stages stop training.
  bool regroup = false;
  bool operator==(const Reconfiguration&) const = default;
};

/// Moves needed so that every rank of `after` holds the layers of its stage: a rank that already holds a layer gets no
/// move, others get it from a live rank that held it in `before`. Ranks that no longer need a layer just drop it. Of t
/// tensor ranks the first is named; each of them moves 1 / t.
Reconfiguration diff(const Phase& before, const Phase& after, const Model& model, Optimizer optimizer, DType dtype);

/// Whether updates that are delayed go on from `before` to `after` with both versions of the weights: the same layers
/// train in the same pipeline on the same ranks. Else `after` begins with equal versions.
bool keeps_weight_versions(const Phase& before, const Phase& after);

}  // namespace frostpipe
