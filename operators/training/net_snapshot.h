#pragma once
#include <string>

#include "executor/checkpoint/checkpoint_writer.h"
#include "executor/checkpoint/safetensors.h"
#include "operators/training/layer_mover.h"

namespace frostpipe {

/// Returns a layer as a checkpoint stores it, in float32 and flat: `weights` (the kernel, then the bias) and
/// `first_moment` (their momentum); with a batch norm also `norm` (scale, then shift), `norm_moment`, `running_mean`,
/// `running_variance` and `num_batches` (I64). A pooling layer has no tensors.
LayerImage image_of(int layer, const NetLayer& shape, WholeLayer whole);

/// Returns the layer of such a file, which messages call `place`. Throws InvalidInput if the file lacks a tensor, or
/// has it with another size or dtype.
WholeLayer stored_layer(const SafetensorsFile& file, const std::string& place, const NetLayer& shape);

}  // namespace frostpipe
