#include "executor/models/layer_images.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <cstring>
#include <span>

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

void add_moments(const Moments& moments, std::vector<StoredValues>& values) {
  for (const auto& [name, moment] : kMoments)
    if ((moments.*moment).defined()) values.push_back({name, moments.*moment});
}

}  // namespace

std::vector<StoredValues> stored_values(const LayerState& state) {
  std::vector<StoredValues> values{{"weights", state.weights.detach()}};
  if (state.older.weights.defined()) values.push_back({"older_weights", state.older.weights});
  add_moments(state.moments, values);
  return values;
}

std::vector<StoredValues> stored_values(const OffloadedMoments& offloaded) {
  std::vector<StoredValues> values{{"weights", offloaded.weights}};
  add_moments(offloaded.moments, values);
  return values;
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
  const auto kept = std::span(kMoments).first(num_moments);
  const bool has_moments = !kept.empty() && file.tensors().contains(kept.front().name);
  if (state.trains())
    for (const auto& [name, moment] : kept) (state.moments.*moment).copy_(stored(file, place, name, state));
  if (state.trains() || !has_moments) return;
  OffloadedMoments& moments = offloaded[layer];
  moments = {
      .moments = {}, .weights = stored(file, place, "weights", state), .whole = state.whole, .slice = state.slice};
  for (const auto& [name, moment] : kept) moments.moments.*moment = stored(file, place, name, state);
}

}  // namespace frostpipe
