#pragma once
#include <map>

#include "executor/checkpoint/checkpoint.h"
#include "executor/checkpoint/checkpoint_writer.h"
#include "executor/models/layer_state.h"

namespace frostpipe {

/// A layer as a checkpoint keeps it. Tensors that training changes are copied, the others shared.
LayerImage image_of(int layer, const LayerState& state);
LayerImage image_of(int layer, const OffloadedMoments& offloaded);

/// Fills the layer's weights and, where it trains, its moments and the older weights that the file may have; moments
/// that it does not use now are offloaded. `num_moments`: optimizer_moments. Throws InvalidInput if the file lacks a
/// tensor or has it in another size or type.
void restore_layer(const Checkpoint& checkpoint, int layer, int num_moments, LayerState& state,
                   std::map<int, OffloadedMoments>& offloaded);

}  // namespace frostpipe
