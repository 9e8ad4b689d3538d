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

/// Returns a whole layer in a checkpoint's form. `frozen` says that training no longer changes it; `changes` says that
/// the values still change, so they are copied.
LayerImage image_of(int layer, const std::vector<StoredValues>& whole, bool frozen, bool changes);

/// Reads the rank's part of a layer from a file, which has the whole layer. Fills the layer's weights and, if it
/// trains, its moments and the older weights if the file has them. Moments that are not used now are offloaded.
/// `num_moments` is optimizer_moments(). Throws InvalidInput if the file lacks a tensor, or its size or dtype differs.
void restore_layer(const Checkpoint& checkpoint, int layer, int num_moments, LayerState& state,
                   std::map<int, OffloadedMoments>& offloaded);

}  // namespace frostpipe
