#pragma once
#include <map>

#include "executor/checkpoint/checkpoint.h"
#include "executor/checkpoint/checkpoint_writer.h"
#include "executor/models/layer_state.h"

namespace frostpipe {

/// What a checkpoint keeps of a layer, flat, by the names that it has there.
struct StoredValues {
  const char* name;
  at::Tensor values;
};
std::vector<StoredValues> stored_values(const LayerState& state);
std::vector<StoredValues> stored_values(const OffloadedMoments& offloaded);

/// A whole layer as a checkpoint keeps it. `frozen`: training changes it no more. `changes`: the values do, and are
/// copied.
LayerImage image_of(int layer, const std::vector<StoredValues>& whole, bool frozen, bool changes);

/// Of a file, which has the whole layer, what the rank holds. Fills the layer's weights and, where it trains, its
/// moments and the older weights that the file may have; moments that it does not use now are offloaded. `num_moments`:
/// optimizer_moments. Throws InvalidInput if the file lacks a tensor or has it in another size or type.
void restore_layer(const Checkpoint& checkpoint, int layer, int num_moments, LayerState& state,
                   std::map<int, OffloadedMoments>& offloaded);

}  // namespace frostpipe
