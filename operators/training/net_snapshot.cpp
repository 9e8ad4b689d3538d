#include "operators/training/net_snapshot.h"

#include <ATen/ops/empty.h>

#include <cstring>
#include <utility>
#include <vector>

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

WholeLayer stored_layer(const SafetensorsFile& file, const NetLayer& shape) {
  WholeLayer whole;
  for (const LayerTensor& tensor : tensors_of(shape, whole)) {
    tensor.values = at::empty(tensor.shape, at::kFloat);
    const StoredTensor& stored = file.tensor(tensor.name, {tensor.values.numel()});
    std::memcpy(tensor.values.data_ptr(), stored.data.data(), stored.data.size());
  }
  if (shape.batch_norm)
    std::memcpy(&whole.state.num_batches, file.tensor(kNumBatches, {1}).data.data(), sizeof(std::int64_t));
  return whole;
}

}  // namespace frostpipe
