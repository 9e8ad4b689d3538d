#pragma once
#include <map>

#include "executor/checkpoint/checkpoint.h"
#include "executor/checkpoint/checkpoint_writer.h"
#include "executor/models/layer_state.h"

namespace frostpipe {

/// The flat values of a layer that a checkpoint stores, with their names there.
struct StoredValues {
  const char* name;
  at::Tensor values;
};
std::vector<StoredValues> stored_values(const LayerState& state);
std::vector<StoredValues> stored_values(const OffloadedMoments& offloaded);

/// Returns the form of a layer that a checkpoint writer takes. `whole` has the values of the whole layer. `frozen` says
/// that training no longer changes the layer; `changes` says that the tensors of `whole` may change before they are
/// written, so they are copied.
LayerImage image_of(int layer, const std::vector<StoredValues>& whole, bool frozen, bool changes);

/// Reads the rank's part of a layer from a file, which has the whole layer. Fills the layer's weights and, if it
/// trains, its moments and, if the file has them, the older weights. Moments of a frozen layer are put into
/// `offloaded`. `num_moments` is optimizer_moments(). Does not update `rounded`: call round_weights() afterwards.
/// Throws InvalidInput if the file is damaged or lacks a tensor, or if a tensor's size or dtype differs.
void restore_layer(const Checkpoint& checkpoint, int layer, int num_moments, LayerState& state,
                   std::map<int, OffloadedMoments>& offloaded);

}  // namespace frostpipe
