#pragma once
#include "executor/checkpoint/checkpoint_writer.h"
#include "executor/checkpoint/safetensors.h"
#include "operators/training/layer_mover.h"

namespace frostpipe {

/// A layer as a checkpoint keeps it, in float32 and flat: weights (the kernel, then the bias), first_moment (their
/// momentum); with a batch norm norm (scale, then shift), norm_moment, running_mean, running_variance and num_batches
/// (I64). Of pooling layers nothing.
LayerImage image_of(int layer, const NetLayer& shape, WholeLayer whole);

/// The layer of such a file. Throws InvalidInput if the file lacks a tensor, or has it in another size.
WholeLayer stored_layer(const SafetensorsFile& file, const NetLayer& shape);

}  // namespace frostpipe
