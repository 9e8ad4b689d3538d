#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/parse_json.h"
#include "operators/graph/known_nets.h"
#include "operators/nets/net_families.h"
#include "operators/nets/net_folder.h"

// timm's config.json is {"architecture": "vgg16_bn", "num_classes", "global_pool": "avg", "label_names",
// "model_args": {"drop_rate"}, "pretrained_cfg": {"input_size", "mean", "std"}}. frostpipe adds "head_hidden_size",
// timm's name for the number of features that the last linear layer reads, which timm does not write.

namespace frostpipe {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kClassifierSize = 4096, kClassifiedPixels = 7, kLargestPicture = 255;

const std::map<std::string, std::vector<int>> kVggDepths = {{"vgg11_bn", {1, 1, 2, 2, 2}},
                                                            {"vgg13_bn", {2, 2, 2, 2, 2}},
                                                            {"vgg16_bn", {2, 2, 3, 3, 3}},
                                                            {"vgg19_bn", {2, 2, 4, 4, 4}}};

bool is_vgg(const Json& config) {
  const Json name = config.value("architecture", Json());
  return name.is_string() && name.get<std::string>().starts_with("vgg");
}

/// Returns the object `key`; an empty one if it is missing.
Json vgg_object(const ConfigFields& fields, const char* key) {
  const Json& given = fields.given(key);
  if (!given.is_null() && !given.is_object())
    throw InvalidInput(fields.place(key), "must be a JSON object", given.dump());
  return given.is_null() ? Json::object() : given;
}

/// Reads the fields that timm and transformers' wrapper of it write beside those above, which change nothing in a
/// classifier, so that they are known.
void read_notes(const ConfigFields& fields) {
  for (const char* const note : {"do_pooling", "label_descriptions", "num_features"}) fields.given(note);
}

/// Throws InvalidInput if the net has another pooling than the mean before its classifier.
void require_mean_pooling(const ConfigFields& fields) {
  const Json& pooling = fields.given("global_pool");
  if (!pooling.is_null() && pooling != "avg")
    throw InvalidInput(fields.place("global_pool"), "must be avg: another one is not computed here", pooling.dump());
}

int vgg_picture_size(const Json& pretrained, const std::string& file) {
  const std::string place = file + ": pretrained_cfg.input_size";
  const Json given = pretrained.value("input_size", Json());
  if (given.is_null()) return NetShape().picture_size;
  if (!given.is_array() || given.size() != 3 || given[0] != 3 || given[1] != given[2])
    throw InvalidInput(place, "must be [3, PIXELS, PIXELS]", given.dump());
  const int size = picture_size_from(given[1], place);
  if (size < kSmallestVggPicture || size > kLargestPicture)
    throw InvalidInput(place, fmt::format("must be {} to {} pixels for a VGG", kSmallestVggPicture, kLargestPicture),
                       std::to_string(size));
  return size;
}

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

/// Returns the dropout rate. Throws InvalidInput if model_args has a field that would change the net.
double vgg_dropout(const ConfigFields& fields) {
  const Json arguments = vgg_object(fields, "model_args");
  for (const auto& [key, value] : arguments.items()) {
    const bool is_known = key == "drop_rate" || (key == "num_classes" && value == fields.given("num_classes")) ||
                          (key == "global_pool" && value == "avg") || (key == "in_chans" && value == 3) ||
                          (key == "mlp_ratio" && value == 1);
    if (!is_known)
      throw InvalidInput(fields.place("model_args.") + key,
                         key == "num_classes" ? "must be the num_classes beside model_args"
                                              : "must not be given: it is not computed here",
                         value.dump());
  }
  const Json rate = arguments.value("drop_rate", Json());
  return rate.is_number() ? rate.get<double>() : 0;
}

NetConfig read_vgg(const std::filesystem::path&, const std::string& name, const ConfigFields& fields,
                   const std::string& file) {
  const std::string architecture = fields.text("architecture");
  const auto depths = kVggDepths.find(architecture);
  if (depths == kVggDepths.end())
    throw InvalidInput(file + ": architecture", "must be vgg11_bn, vgg13_bn, vgg16_bn or vgg19_bn",
                       "\"" + architecture + "\"");
  read_notes(fields);
  require_mean_pooling(fields);
  const Json pretrained = vgg_object(fields, "pretrained_cfg");
  VggShape shape{.picture_size = vgg_picture_size(pretrained, file), .depths = depths->second};
  shape.num_classes = small_number(fields, "num_classes", shape.num_classes, file);
  const int features = shape.hidden_sizes.back(),
            read = small_number(fields, "head_hidden_size", kClassifierSize, file);
  if (read != kClassifierSize && read != features)
    throw InvalidInput(
        file + ": head_hidden_size",
        fmt::format("must be {}, of two linear layers before the last, or {}, of none", kClassifierSize, features),
        std::to_string(read));
  if (read == features) shape.classifier_size.reset();
  return {.net = vgg(name, shape),
          .label_names = vgg_label_names(fields),
          .normalisation = vgg_normalisation(pretrained, file),
          .dropout = vgg_dropout(fields)};
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
  write_file_atomically(target / "config.json", config.dump(2) + "\n");
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

constexpr NetFamily kVgg = {
    .is_of = is_vgg, .read = read_vgg, .namings = kVggNamings, .is_written_as_read = true, .write_config = write_vgg};

}  // namespace frostpipe
