#pragma once
#include <vector>

#include "plan/plan.h"

namespace frostpipe {

/// A part of one layer's state copied between two ranks. With moments only if the layer still trains.
struct TensorMove {
  int layer = 0;
  int from_rank = 0;
  int to_rank = 0;
  bool with_moments = false;
  Bytes bytes = 0;
  TensorSlice slice = {};  // of what tensor ranks share of the layer
  bool with_whole = true;  // and all of what every tensor rank has
  bool operator==(const TensorMove&) const = default;
};

/// What changes between two phases, as a value: computed here, priced by the simulator, carried out by the executor.
struct Reconfiguration {
  int first_trainable_before = 0;
  int first_trainable_after = 0;
  /// Layers whose gradients are dropped and whose moments are offloaded (kept in host memory, not lost).
  std::vector<int> newly_frozen;
  /// In ascending (layer, to_rank, slice) order; sources are spread over the ranks that hold the same part.
  std::vector<TensorMove> moves;
  /// Process groups must be rebuilt: the layout is another one, or stages stop training.
  bool regroup = false;
  bool operator==(const Reconfiguration&) const = default;
};

/// Moves needed so that every rank of `after` holds its part of the layers of its stage: its TensorSlice of what tensor
/// ranks share, and all of what every tensor rank has. A rank keeps what it held in `before`, and gets no more than the
/// rest, each piece from a rank that held it in `before`, and what every tensor rank has with the first piece if it
/// held nothing of the layer. Slices for t tensor ranks before and t' after meet at lcm(t, t')-ths, so a piece is a
/// TensorSlice too, and there is at most one from a rank to another per layer. A layer of which `model` says that
/// tensor ranks share nothing moves only to ranks that held nothing of it. Ranks that no longer need a part just drop
/// it. Bytes count all that tensor ranks share of a layer as one row of parameters, rounded as TensorSlice says.
Reconfiguration diff(const Phase& before, const Phase& after, const Model& model, Optimizer optimizer, DType dtype);

/// Whether updates that are delayed go on from `before` to `after` with both versions of the weights: the same layers
/// train in the same pipeline on the same ranks. Else `after` begins with equal versions.
bool keeps_weight_versions(const Phase& before, const Phase& after);

}  // namespace frostpipe
