#include "executor/nets/net_tensors.h"

#include <fmt/format.h>

#include <cstdio>

#include "executor/nets/net_kernels.h"
#include "profiles/error.h"

namespace frostpipe {
namespace {

/// What the names of a layer's tensors begin with.
struct Prefixes {
  std::string product, norm;
};

/// "stage2.0.conv1", "stage2.0.shortcut": stages, blocks and convolutions as their names count them.
struct BlockLayer {
  int stage = 0, block = 0, convolution = 0;  // 0 = the shortcut
};

BlockLayer parse_block_layer(const std::string& name) {
  BlockLayer layer;
  const bool is_shortcut = name.ends_with(".shortcut");
  const int fields =
      is_shortcut ? std::sscanf(name.c_str(), "stage%d.%d.", &layer.stage, &layer.block) + 1
                  : std::sscanf(name.c_str(), "stage%d.%d.conv%d", &layer.stage, &layer.block, &layer.convolution);
  FROSTPIPE_CHECK(fields == 3, "resnet() names a layer of a block so");
  return layer;
}

Prefixes transformers_prefixes(const std::string& layer) {
  if (layer == "fc") return {.product = "classifier.1.", .norm = ""};
  std::string prefix = "resnet.embedder.embedder.";
  if (layer != "conv1") {
    const auto [stage, block, convolution] = parse_block_layer(layer);
    prefix = fmt::format("resnet.encoder.stages.{}.layers.{}.", stage - 1, block);
    prefix += convolution > 0 ? fmt::format("layer.{}.", convolution - 1) : "shortcut.";
  }
  return {prefix + "convolution.", prefix + "normalization."};
}

Prefixes torchvision_prefixes(const std::string& layer) {
  if (layer == "fc") return {.product = "fc.", .norm = ""};
  if (layer == "conv1") return {"conv1.", "bn1."};
  const auto [stage, block, convolution] = parse_block_layer(layer);
  const std::string prefix = fmt::format("layer{}.{}.", stage, block);
  if (convolution == 0) return {prefix + "downsample.0.", prefix + "downsample.1."};
  return {fmt::format("{}conv{}.", prefix, convolution), fmt::format("{}bn{}.", prefix, convolution)};
}

Prefixes prefixes_of(const std::string& layer, TensorNaming naming) {
  if (naming == TensorNaming::torchvision) return torchvision_prefixes(layer);
  Prefixes prefixes = transformers_prefixes(layer);
  static const std::string kPrefix = "resnet.";
  if (naming == TensorNaming::transformers_without_prefix)
    for (std::string* prefix : {&prefixes.product, &prefixes.norm})
      if (prefix->starts_with(kPrefix)) *prefix = prefix->substr(kPrefix.size());
  return prefixes;
}

}  // namespace

std::vector<NetTensor> tensors_of(const NetLayer& layer, TensorNaming naming) {
  using enum NetTensor::Part;
  if (is_pooling(layer)) return {};
  const auto [product, norm] = prefixes_of(layer.name, naming);
  std::vector<std::int64_t> shape = {layer.out_channels, layer.in_channels / layer.groups};
  if (!is_linear(layer)) shape.insert(shape.end(), {layer.kernel, layer.kernel});
  std::vector<NetTensor> tensors = {{product + "weight", shape, kernel}};
  const std::vector<std::int64_t> channels = {layer.out_channels};
  if (layer.bias) tensors.push_back({product + "bias", channels, bias});
  if (!layer.batch_norm) return tensors;
  tensors.push_back({norm + "weight", channels, scale});
  tensors.push_back({norm + "bias", channels, shift});
  tensors.push_back({norm + "running_mean", channels, running_mean});
  tensors.push_back({norm + "running_var", channels, running_variance});
  tensors.push_back({norm + "num_batches_tracked", {}, num_batches});
  return tensors;
}

at::Tensor values_of(const NetLayer& layer, const NetLayerState& state, const NetTensor& tensor) {
  using enum NetTensor::Part;
  switch (tensor.part) {
    case kernel:
      return kernel_of(layer, state).view(tensor.shape);
    case bias:
      return bias_of(layer, state);
    case scale:
      return state.norm[0];
    case shift:
      return state.norm[1];
    case running_mean:
      return state.running_mean;
    case running_variance:
      return state.running_variance;
    case num_batches:
      break;
  }
  FROSTPIPE_CHECK(false, "a count is no tensor of floats");
}

}  // namespace frostpipe
