#include "executor/models/layer_images.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>

#include "executor/device/memory_meter.h"
#include "profiles/error.h"

namespace frostpipe {
namespace {

const char* stored_type(const at::Tensor& tensor) { return tensor.scalar_type() == at::kDouble ? "F64" : "F32"; }

ImageTensor image_tensor(const char* name, const at::Tensor& tensor, bool changes) {
  const auto host = std::make_shared<const at::Tensor>(
      changes ? tensor.to(at::kCPU, /*non_blocking=*/false, /*copy=*/true) : tensor.to(at::kCPU));
  return {
      name, stored_type(*host), host->numel(), {static_cast<const std::byte*>(host->data_ptr()), host->nbytes()}, host};
}

/// The stored values, on the host.
at::Tensor stored(const SafetensorsFile& file, const std::string& place, const char* name, const at::Tensor& like) {
  const StoredTensor& tensor = file.tensor(name, {like.numel()});
  if (tensor.dtype != stored_type(like))
    throw InvalidInput(place + ": tensor " + name, std::string("must have dtype ") + stored_type(like), tensor.dtype);
  const at::Tensor values = at::empty_like(like, at::kCPU);
  std::memcpy(values.data_ptr(), tensor.data.data(), tensor.data.size());
  return values;
}

}  // namespace

LayerImage image_of(int layer, const LayerState& state) {
  const at::NoGradGuard no_grad;
  const UncountedMemory outside_the_device;
  LayerImage image{.layer = layer, .frozen = !state.trains(), .tensors = {}};
  image.tensors.push_back(image_tensor("weights", state.weights.detach(), state.trains()));
  if (state.older.weights.defined()) image.tensors.push_back(image_tensor("older_weights", state.older.weights, true));
  if (!state.first_moment.defined()) return image;
  image.tensors.push_back(image_tensor("first_moment", state.first_moment, true));
  image.tensors.push_back(image_tensor("second_moment", state.second_moment, true));
  return image;
}

LayerImage image_of(int layer, const OffloadedMoments& offloaded) {
  return {.layer = layer,
          .frozen = true,
          .tensors = {image_tensor("weights", offloaded.weights, false),
                      image_tensor("first_moment", offloaded.first_moment, false),
                      image_tensor("second_moment", offloaded.second_moment, false)}};
}

void restore_layer(const Checkpoint& checkpoint, int layer, int num_moments, LayerState& state,
                   std::map<int, OffloadedMoments>& offloaded) {
  const at::NoGradGuard no_grad;
  const SafetensorsFile file = open_layer(checkpoint, layer);
  const std::string place = (checkpoint.folder / layer_file_name(layer)).string();
  state.weights.copy_(stored(file, place, "weights", state.weights));
  if (state.trains() && file.tensors().contains("older_weights")) {
    keep_older_weights(state);
    state.older.weights.copy_(stored(file, place, "older_weights", state.weights));
  }
  const bool has_moments = file.tensors().contains("first_moment");
  if (num_moments == 0 || (!state.trains() && !has_moments)) return;
  if (state.trains()) {
    state.first_moment.copy_(stored(file, place, "first_moment", state.weights));
    state.second_moment.copy_(stored(file, place, "second_moment", state.weights));
    return;
  }
  const UncountedMemory outside_the_device;
  offloaded[layer] = {stored(file, place, "first_moment", state.weights),
                      stored(file, place, "second_moment", state.weights),
                      stored(file, place, "weights", state.weights)};
}

}  // namespace frostpipe
