#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "executor/models/folder/model_config.h"
#include "operators/nets/net_families.h"

namespace frostpipe {
namespace {

NetConfig read_resnet(const std::filesystem::path& folder, const ConfigFields& fields, const std::string& file) {
  return {.label_names = label_names_from_json(fields.json().dump(), file),
          .normalisation = read_normalisation(folder)};
}

void write_resnet(const NetFolder& source, const std::filesystem::path& target) {
  write_transformers_config(source, "ResNetForImageClassification", target);
}

/// The numbers in the name of a block's layer, such as "stage2.0.conv1" or "stage2.0.shortcut".
struct BlockLayer {
  int stage = 0, block = 0, convolution = 0;  // 0 = the shortcut
};

BlockLayer parse_block_layer(const std::string& name) {
  BlockLayer layer;
  const bool is_shortcut = name.ends_with(".shortcut");
  const int fields =
      is_shortcut ? std::sscanf(name.c_str(), "stage%d.%d.", &layer.stage, &layer.block) + 1
                  : std::sscanf(name.c_str(), "stage%d.%d.conv%d", &layer.stage, &layer.block, &layer.convolution);
  FROSTPIPE_CHECK(fields == 3, "resnet() gives the layers of a block such names");
  return layer;
}

LayerPrefixes resnet_without_base_model(const NetShape& net, int index) {
  const std::string& layer = net.layers[index].name;
  if (layer == "fc") return {.product = "classifier.1.", .norm = ""};
  std::string prefix = "embedder.embedder.";
  if (layer != "conv1") {
    const auto [stage, block, convolution] = parse_block_layer(layer);
    prefix = fmt::format("encoder.stages.{}.layers.{}.", stage - 1, block);
    prefix += convolution > 0 ? fmt::format("layer.{}.", convolution - 1) : "shortcut.";
  }
  return {prefix + "convolution.", prefix + "normalization."};
}

LayerPrefixes resnet_of_transformers(const NetShape& net, int index) {
  const LayerPrefixes inner = resnet_without_base_model(net, index);
  return inner.norm.empty() ? inner : LayerPrefixes{"resnet." + inner.product, "resnet." + inner.norm};
}

LayerPrefixes resnet_of_torchvision(const NetShape& net, int index) {
  const std::string& layer = net.layers[index].name;
  if (layer == "fc") return {.product = "fc.", .norm = ""};
  if (layer == "conv1") return {"conv1.", "bn1."};
  const auto [stage, block, convolution] = parse_block_layer(layer);
  const std::string prefix = fmt::format("layer{}.{}.", stage, block);
  if (convolution == 0) return {prefix + "downsample.0.", prefix + "downsample.1."};
  return {fmt::format("{}conv{}.", prefix, convolution), fmt::format("{}bn{}.", prefix, convolution)};
}

constexpr TensorNaming kResNetNamings[] = {resnet_of_transformers, resnet_without_base_model, resnet_of_torchvision};

}  // namespace

constexpr NetFamily kResNet = {
    .kind = NetKind::resnet, .read = read_resnet, .namings = kResNetNamings, .write_config = write_resnet};

}  // namespace frostpipe
