#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "executor/models/folder/model_config.h"
#include "operators/nets/net_families.h"

namespace frostpipe {
namespace {

NetConfig mobilenet_config_of(const std::filesystem::path& folder, double default_dropout, const ConfigFields& fields,
                              const std::string& file) {
  const nlohmann::ordered_json dropout =
      fields.json().value("classifier_dropout_prob", nlohmann::ordered_json(default_dropout));
  return {.label_names = label_names_from_json(fields.json().dump(), file),
          .normalisation = read_normalisation(folder),
          .dropout = dropout.is_number() ? dropout.get<double>() : 0};
}

constexpr char kMobileNetType[] = "mobilenet_v1", kMobileNetV2Type[] = "mobilenet_v2";

NetConfig read_mobilenet(const std::filesystem::path& folder, const ConfigFields& fields, const std::string& file) {
  return mobilenet_config_of(folder, 0.999, fields, file);
}

NetConfig read_mobilenet_v2(const std::filesystem::path& folder, const ConfigFields& fields, const std::string& file) {
  return mobilenet_config_of(folder, 0.8, fields, file);
}

void write_mobilenet(const NetFolder& source, const std::filesystem::path& target) {
  write_transformers_config(source, "MobileNetV1ForImageClassification", target);
}

void write_mobilenet_v2(const NetFolder& source, const std::filesystem::path& target) {
  write_transformers_config(source, "MobileNetV2ForImageClassification", target);
}

LayerPrefixes mobilenet_prefixes(const std::string& layer) {
  return {layer + ".convolution.", layer + ".normalization."};
}

/// Returns the prefixes in a file without the base model's prefix; there the layers after the first are numbered in
/// order.
LayerPrefixes v1_without_base_model(const NetShape& net, int index) {
  if (net.layers[index].name == "fc") return {.product = "classifier.", .norm = ""};
  return mobilenet_prefixes(index == 0 ? "conv_stem" : fmt::format("layer.{}", index - 1));
}

/// Returns the prefixes in a file without the base model's prefix; "block3.expand", for example, is layer.2.expand_1x1.
LayerPrefixes v2_without_base_model(const NetShape& net, int index) {
  const std::string& name = net.layers[index].name;
  if (name == "fc") return {.product = "classifier.", .norm = ""};
  if (name == "last") return mobilenet_prefixes("conv_1x1");
  if (name == "stem.first") return mobilenet_prefixes("conv_stem.first_conv");
  const std::size_t dot = name.find('.');
  const std::string block = name.substr(0, dot), part = name.substr(dot + 1);
  const std::string place =
      block == "stem" ? "conv_stem" : fmt::format("layer.{}", std::stoi(block.substr(std::string("block").size())) - 1);
  return mobilenet_prefixes(place + (part == "expand"      ? ".expand_1x1"
                                     : part == "depthwise" ? ".conv_3x3"
                                                           : ".reduce_1x1"));
}

template <TensorNaming kInner, const char* kType>
LayerPrefixes mobilenet_of_transformers(const NetShape& net, int index) {
  const LayerPrefixes inner = kInner(net, index);
  const std::string prefix = std::string(kType) + ".";
  return inner.norm.empty() ? inner : LayerPrefixes{prefix + inner.product, prefix + inner.norm};
}

constexpr TensorNaming kMobileNetNamings[] = {mobilenet_of_transformers<v1_without_base_model, kMobileNetType>,
                                              v1_without_base_model};
constexpr TensorNaming kMobileNetV2Namings[] = {mobilenet_of_transformers<v2_without_base_model, kMobileNetV2Type>,
                                                v2_without_base_model};

}  // namespace

constexpr NetFamily kMobileNet = {
    .kind = NetKind::mobilenet, .read = read_mobilenet, .namings = kMobileNetNamings, .write_config = write_mobilenet};
constexpr NetFamily kMobileNetV2 = {.kind = NetKind::mobilenet_v2,
                                    .read = read_mobilenet_v2,
                                    .namings = kMobileNetV2Namings,
                                    .write_config = write_mobilenet_v2};

}  // namespace frostpipe
