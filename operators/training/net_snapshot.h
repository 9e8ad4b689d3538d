#pragma once
#include "executor/checkpoint/checkpoint_files.h"
#include "operators/training/layer_mover.h"

namespace frostpipe {

/// Writes all layers of a net, in their order, to a safetensors file: of layer LAYER, as it is called in the net, the
/// float32 tensors `LAYER.weights` and `LAYER.momentum`, flat, and of its batch norm `LAYER.norm` and
/// `LAYER.norm_momentum` [2, channels], `LAYER.running_mean` and `LAYER.running_variance` [channels], and the integer
/// `LAYER.num_batches`. Pooling layers have nothing.
class NetStateWriter {
 public:
  NetStateWriter(const std::filesystem::path& path, const NetShape& net);
  void write(int layer, WholeLayer whole);
  CheckpointFile finish();

 private:
  std::filesystem::path path_;
  const NetShape& net_;
  SafetensorsWriter writer_;
};

/// A layer as it was written, in memory of its own. Throws InvalidInput that names the file if it is of another net.
WholeLayer stored_layer(const SafetensorsFile& file, const NetShape& net, int layer);

}  // namespace frostpipe
