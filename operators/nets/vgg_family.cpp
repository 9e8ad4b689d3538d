#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/parse_json.h"
#include "operators/nets/net_families.h"
#include "operators/nets/net_folder.h"

// timm's config.json is {"architecture": "vgg16_bn", "num_classes", "global_pool": "avg", "label_names",
// "model_args": {"drop_rate"}, "pretrained_cfg": {"input_size", "mean", "std"}}. frostpipe adds "head_hidden_size",
// timm's name for the number of features that the last linear layer reads, which timm does not write.

namespace frostpipe {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kClassifiedPixels = 7;

Normalisation vgg_normalisation(const nlohmann::json& pretrained, const std::string& file) {
  Normalisation normalisation{.mean = {0.485f, 0.456f, 0.406f}, .deviation = {0.229f, 0.224f, 0.225f}};  // ImageNet's
  read_three(pretrained, file + ": pretrained_cfg", "mean", false, normalisation.mean);
  read_three(pretrained, file + ": pretrained_cfg", "std", true, normalisation.deviation);
  return normalisation;
}

std::vector<std::string> vgg_label_names(const ConfigFields& fields) {
  const Json& given = fields.given("label_names");
  std::vector<std::string> names;
  if (given.is_null()) return names;
  const bool fits =
      given.is_array() && std::all_of(given.begin(), given.end(), [](const Json& one) { return one.is_string(); });
  if (!fits) throw InvalidInput(fields.place("label_names"), "must be a list of names", given.dump().substr(0, 80));
  for (const Json& name : given) names.push_back(name);
  return names;
}

NetConfig read_vgg(const std::filesystem::path&, const ConfigFields& fields, const std::string& file) {
  const Json rate = fields.object("model_args").value("drop_rate", Json());
  return {.label_names = vgg_label_names(fields),
          .normalisation = vgg_normalisation(fields.object("pretrained_cfg"), file),
          .dropout = rate.is_number() ? rate.get<double>() : 0};
}

void write_vgg(const NetFolder& source, const std::filesystem::path& target) {
  auto config = parse_json<Json>(read_text_file(source.path / "config.json"), (source.path / "config.json").string());
  const int num_classes = source.net.layers.back().out_channels, size = source.net.picture_size;
  config["num_classes"] = num_classes;
  config.erase("label_descriptions");
  config.erase("label_names");
  if (!source.label_names.empty()) config["label_names"] = source.label_names;
  if (config.contains("model_args")) config["model_args"]["num_classes"] = num_classes;
  Json& pretrained = config["pretrained_cfg"];
  pretrained["num_classes"] = num_classes;
  pretrained["input_size"] = {3, size, size};
  pretrained["interpolation"] = "bilinear";
  pretrained["crop_pct"] = 1.0;
  pretrained["crop_mode"] = "squash";
  pretrained["mean"] = source.normalisation.mean;
  pretrained["std"] = source.normalisation.deviation;
  write_file_atomically(target / "config.json", json_text(config, 2) + "\n");
}

/// Returns the prefixes of a layer among the features, whose modules are numbered in order: a convolution, its batch
/// norm, its ReLU, ..., a max pooling.
LayerPrefixes vgg_features(const NetShape& net, int index) {
  int module = 0;
  for (int i = 0; i < index; ++i) module += is_pooling(net.layers[i]) ? 1 : 3;
  return {fmt::format("features.{}.", module), fmt::format("features.{}.", module + 1)};
}

LayerPrefixes vgg_of_timm(const NetShape& net, int index) {
  const NetLayer& layer = net.layers[index];
  if (layer.batch_norm) return vgg_features(net, index);
  if (layer.name == "fc1") return {.product = "pre_logits.fc1.", .norm = "", .stored_pixels = kClassifiedPixels};
  if (layer.name == "fc2") return {.product = "pre_logits.fc2.", .norm = "", .stored_pixels = 1};
  return {.product = "head.fc.", .norm = ""};
}

LayerPrefixes vgg_of_torchvision(const NetShape& net, int index) {
  const NetLayer& layer = net.layers[index];
  if (layer.batch_norm) return vgg_features(net, index);
  if (layer.name == "fc") return {.product = "classifier.", .norm = ""};
  return {.product = layer.name == "fc1"   ? "classifier.0."
                     : layer.name == "fc2" ? "classifier.3."
                                           : "classifier.6.",
          .norm = ""};
}

constexpr TensorNaming kVggNamings[] = {vgg_of_timm, vgg_of_torchvision};

}  // namespace

constexpr NetFamily kVgg = {.kind = NetKind::vgg,
                            .read = read_vgg,
                            .namings = kVggNamings,
                            .is_written_as_read = true,
                            .write_config = write_vgg};

}  // namespace frostpipe
