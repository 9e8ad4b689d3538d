#include "executor/models/layer_images.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include "base/error.h"
#include "executor/device/memory_meter.h"
#include "executor/models/shards.h"

namespace frostpipe {
namespace {

const char* stored_type(const at::Tensor& tensor) { return tensor.scalar_type() == at::kDouble ? "F64" : "F32"; }

ImageTensor image_tensor(const char* name, const at::Tensor& tensor, bool changes) {
  const auto host = std::make_shared<const at::Tensor>(
      changes ? tensor.to(at::kCPU, /*non_blocking=*/false, /*copy=*/true) : tensor.to(at::kCPU));
  return {
      name, stored_type(*host), host->numel(), {static_cast<const std::byte*>(host->data_ptr()), host->nbytes()}, host};
}

/// Returns the part of the stored values, on the host, that this rank holds.
at::Tensor stored(const SafetensorsFile& file, const std::string& place, const char* name, const LayerState& held) {
  const UncountedMemory outside_the_device;
  const StoredTensor& tensor = file.tensor(name, {count_of(held.whole, ShardOfLayer{})});
  const char* const type = stored_type(held.weights);
  if (tensor.dtype != type)
    throw InvalidInput(place + ": tensor " + name, std::string("must have dtype ") + type, tensor.dtype);
  const at::Tensor values = at::empty({tensor.shape.front()}, at::TensorOptions().dtype(held.weights.scalar_type()));
  std::memcpy(values.data_ptr(), tensor.data.data(), tensor.data.size());
  return held.slice == TensorSlice{} ? values : taken(held.whole, values, {}, {.slice = held.slice});
}

}  // namespace

std::vector<StoredValues> stored_values(const LayerState& state) {
  std::vector<StoredValues> values{{"weights", state.weights.detach()}};
  if (state.older.weights.defined()) values.push_back({"older_weights", state.older.weights});
  if (!state.first_moment.defined()) return values;
  values.push_back({"first_moment", state.first_moment});
  values.push_back({"second_moment", state.second_moment});
  return values;
}

std::vector<StoredValues> stored_values(const OffloadedMoments& offloaded) {
  return {{"weights", offloaded.weights},
          {"first_moment", offloaded.first_moment},
          {"second_moment", offloaded.second_moment}};
}

LayerImage image_of(int layer, const std::vector<StoredValues>& whole, bool frozen, bool changes) {
  const at::NoGradGuard no_grad;
  const UncountedMemory outside_the_device;
  LayerImage image{.layer = layer, .frozen = frozen, .tensors = {}};
  for (const auto& [name, values] : whole) image.tensors.push_back(image_tensor(name, values, changes));
  return image;
}

void restore_layer(const Checkpoint& checkpoint, int layer, int num_moments, LayerState& state,
                   std::map<int, OffloadedMoments>& offloaded) {
  const at::NoGradGuard no_grad;
  const SafetensorsFile file = open_layer(checkpoint, layer);
  const std::string place = (checkpoint.folder / layer_file_name(layer)).string();
  state.weights.copy_(stored(file, place, "weights", state));
  if (state.trains() && file.tensors().contains("older_weights")) {
    keep_older_weights(state);
    state.older.weights.copy_(stored(file, place, "older_weights", state));
  }
  const bool has_moments = file.tensors().contains("first_moment");
  if (num_moments == 0 || (!state.trains() && !has_moments)) return;
  if (state.trains()) {
    state.first_moment.copy_(stored(file, place, "first_moment", state));
    state.second_moment.copy_(stored(file, place, "second_moment", state));
    return;
  }
  offloaded[layer] = {.first_moment = stored(file, place, "first_moment", state),
                      .second_moment = stored(file, place, "second_moment", state),
                      .weights = stored(file, place, "weights", state),
                      .whole = state.whole,
                      .slice = state.slice};
}

}  // namespace frostpipe
