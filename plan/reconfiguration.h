#pragma once
#include <vector>

#include "plan/plan.h"

namespace frostpipe {

/// A part of one layer's state that is copied between two ranks.
struct TensorMove {
  int layer = 0;
  int from_rank = 0;
  int to_rank = 0;
  bool with_moments = false;  // whether to copy its moments; only if the layer still trains
  Bytes bytes = 0;
  TensorSlice slice = {};  // the part of the parameters that tensor ranks split
  bool with_whole = true;  // whether to copy the parameters, too, that every tensor rank holds whole
  bool operator==(const TensorMove&) const = default;
};

/// The change between two phases as a value: computed here, priced by the simulator, carried out by the executor.
struct Reconfiguration {
  int first_trainable_before = 0;
  int first_trainable_after = 0;
  /// Layers whose gradients are dropped and whose moments are offloaded to host memory.
  std::vector<int> newly_frozen;
  /// Ordered by (layer, to_rank, slice). Sources are spread over the ranks that hold the same part.
  std::vector<TensorMove> moves;
  /// Whether process groups must be rebuilt, because the layout or the pipeline ranks of stages change, or pipeline
  /// ranks stop training.
  bool regroup = false;
  bool operator==(const Reconfiguration&) const = default;
};

/// Returns the moves after which every rank of `after` holds its part of its stage's layers: its TensorSlice of the
/// parameters that tensor ranks split, and all those that every tensor rank holds whole. A rank keeps what it held in
/// `before` and receives only the rest, each piece from a rank that held it in `before`. If it held nothing of the
/// layer, the first piece also brings the whole tensors. Slices for t tensor ranks before and t' after meet at
/// multiples of 1 / lcm(t, t'), so each piece is a TensorSlice too, and there is at most one per layer from one rank to
/// another. A layer without split parameters moves only to ranks that held nothing of it. Ranks that no longer need a
/// part drop it. Bytes are counted as if the split parameters of a layer were one row, rounded as in TensorSlice.
Reconfiguration diff(const Phase& before, const Phase& after, const Model& model, Optimizer optimizer, DType dtype);

/// Returns whether delayed updates continue from `before` to `after` with both versions of the weights: the same layers
/// train in the same pipeline on the same ranks. Otherwise `after` begins with equal versions.
bool keeps_weight_versions(const Phase& before, const Phase& after);

}  // namespace frostpipe
