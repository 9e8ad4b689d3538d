#include "operators/training/net_snapshot.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "base/error.h"
#include "executor/optimizer/parameter_update.h"

namespace frostpipe {
namespace {

constexpr const char* kNumBatches = "num_batches";

/// A tensor of a layer and its name in files.
struct LayerTensor {
  const char* name;
  std::vector<std::int64_t> shape;
  at::Tensor& values;
};

std::vector<LayerTensor> tensors_of(const NetLayer& shape, WholeLayer& whole) {
  if (is_pooling(shape)) return {};
  const std::int64_t weights = num_weights(shape), channels = shape.out_channels;
  std::vector<LayerTensor> tensors = {{"weights", {weights}, whole.state.weights},
                                      {kMoments.front().name, {weights}, whole.momentum.weights}};
  if (!shape.batch_norm) return tensors;
  tensors.push_back({"norm", {2, channels}, whole.state.norm});
  tensors.push_back({"norm_moment", {2, channels}, whole.momentum.norm});
  tensors.push_back({"running_mean", {channels}, whole.state.running_mean});
  tensors.push_back({"running_variance", {channels}, whole.state.running_variance});
  return tensors;
}

/// Copies the values of a stored tensor to `to`, which has room for `count` of this dtype.
void copy_values(const SafetensorsFile& file, const std::string& place, const char* name, const char* dtype,
                 std::int64_t count, void* to) {
  const StoredTensor& stored = file.tensor(name, {count});
  if (stored.dtype != dtype)
    throw InvalidInput(fmt::format("{}: tensor {}", place, name), fmt::format("must have dtype {}", dtype),
                       stored.dtype);
  std::memcpy(to, stored.data.data(), stored.data.size());
}

}  // namespace

LayerImage image_of(int layer, const NetLayer& shape, WholeLayer whole) {
  LayerImage image{.layer = layer, .frozen = false, .tensors = {}};
  for (const LayerTensor& tensor : tensors_of(shape, whole)) {
    const auto values = std::make_shared<at::Tensor>(tensor.values.to(at::kFloat).contiguous());
    image.tensors.push_back({.name = tensor.name,
                             .dtype = "F32",
                             .count = values->numel(),
                             .data = {static_cast<const std::byte*>(values->data_ptr()), values->nbytes()},
                             .owner = values});
  }
  if (!shape.batch_norm) return image;
  const auto count = std::make_shared<std::int64_t>(whole.state.num_batches);
  image.tensors.push_back({.name = kNumBatches,
                           .dtype = "I64",
                           .count = 1,
                           .data = std::as_bytes(std::span(count.get(), 1)),
                           .owner = count});
  return image;
}

WholeLayer stored_layer(const SafetensorsFile& file, const std::string& place, const NetLayer& shape) {
  WholeLayer whole;
  for (const LayerTensor& tensor : tensors_of(shape, whole)) {
    tensor.values = at::empty(tensor.shape, at::kFloat);
    copy_values(file, place, tensor.name, "F32", tensor.values.numel(), tensor.values.data_ptr());
  }
  if (shape.batch_norm) copy_values(file, place, kNumBatches, "I64", 1, &whole.state.num_batches);
  return whole;
}

}  // namespace frostpipe
