#include "operators/graph/net_config.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/files.h"
#include "operators/graph/known_nets.h"

namespace frostpipe {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxPixels = 4096;           // on a side
constexpr int kMaxBlocks = 1000;           // of a ResNet
constexpr int kReduction = 4;              // factor by which a ResNet's bottleneck reduces its channels
constexpr double kMaxValues = 6e10;        // outputs of a layer for one sample, and weights: within kMaxOperatorBytes
constexpr double kMaxMultiplyAdds = 1e15;  // of a layer, for one sample

const std::map<std::string, std::vector<int>> kVggDepths = {{"vgg11_bn", {1, 1, 2, 2, 2}},
                                                            {"vgg13_bn", {2, 2, 2, 2, 2}},
                                                            {"vgg16_bn", {2, 2, 3, 3, 3}},
                                                            {"vgg19_bn", {2, 2, 4, 4, 4}}};

/// Returns the field `key`, or `otherwise` if it is missing. Throws InvalidInput unless it is a whole number from 1 to
/// kMax.
int small_number(const ConfigFields& fields, const char* key, int otherwise) {
  constexpr int kMax = 1 << 16;
  const std::int64_t value = fields.positive(key, otherwise);
  if (value > kMax)
    throw InvalidInput(fields.place(key), fmt::format("must be at most {}", kMax), std::to_string(value));
  return static_cast<int>(value);
}

double small_factor(const ConfigFields& fields, const char* key, double otherwise) {
  constexpr double kMax = 64;
  const double value = fields.number(key, otherwise);
  if (value > kMax)
    throw InvalidInput(fields.place(key), fmt::format("must be at most {}", kMax), fmt::format("{}", value));
  return value;
}

/// Returns the pixels on a side of square pictures. Throws InvalidInput with `place` unless it is a number within the
/// limit.
int picture_size_from(const Json& pixels, const std::string& place) {
  const auto is_size = [](const Json& value) {
    return value.is_number_integer() && value.get<std::int64_t>() >= 1 && value.get<std::int64_t>() <= kMaxPixels;
  };
  Json size = pixels;
  if (pixels.is_object() && pixels.contains("shortest_edge")) size = pixels["shortest_edge"];
  if (pixels.is_object() && pixels.contains("height") && pixels.value("width", Json()) == pixels["height"])
    size = pixels["height"];
  if (!is_size(size))
    throw InvalidInput(
        place,
        fmt::format("must be a number of pixels up to {}, as shortest_edge or as equal height and width", kMaxPixels),
        pixels.dump());
  return size.get<int>();
}

/// Returns the picture size of a folder in transformers' format: that of preprocessor_config.json, else image_size,
/// else 224.
int transformers_picture_size(const std::filesystem::path& folder, const ConfigFields& fields) {
  const Json& image_size = fields.given("image_size");
  const std::filesystem::path path = folder / "preprocessor_config.json";
  if (std::filesystem::exists(path)) {
    const std::string file = path.string(), text = read_text_file(path);
    const Json json = ConfigFields(text, file).json();
    const bool cuts = json.value("do_center_crop", Json(false)) == Json(true) && json.contains("crop_size");
    const char* const key = cuts ? "crop_size" : "size";  // the net's input is the centre crop
    const Json given = json.value(key, Json());
    if (!given.is_null()) return picture_size_from(given, file + ": " + key);
  }
  return image_size.is_null() ? NetShape().picture_size : picture_size_from(image_size, fields.place("image_size"));
}

ResNetShape resnet_shape_of(const std::filesystem::path& folder, const ConfigFields& fields) {
  ResNetShape shape{.picture_size = transformers_picture_size(folder, fields)};
  shape.embedding_size = small_number(fields, "embedding_size", shape.embedding_size);
  shape.hidden_sizes = fields.positives("hidden_sizes", shape.hidden_sizes);
  shape.depths = fields.positives("depths", shape.depths);
  if (shape.depths.size() != shape.hidden_sizes.size())
    throw InvalidInput(fields.place("depths"),
                       fmt::format("must have one of each of the {} hidden_sizes", shape.hidden_sizes.size()),
                       std::to_string(shape.depths.size()));
  const std::int64_t num_blocks = std::accumulate(shape.depths.begin(), shape.depths.end(), std::int64_t{0});
  if (num_blocks > kMaxBlocks)
    throw InvalidInput(fields.place("depths"), fmt::format("must be at most {} blocks together", kMaxBlocks),
                       std::to_string(num_blocks));
  const std::string type = fields.text("layer_type");
  if (type != "" && type != "basic" && type != "bottleneck")
    throw InvalidInput(fields.place("layer_type"), "must be basic or bottleneck", "\"" + type + "\"");
  shape.bottleneck = type != "basic";
  shape.downsample_in_first_stage = fields.flag("downsample_in_first_stage", false);
  shape.downsample_in_bottleneck = fields.flag("downsample_in_bottleneck", false);
  for (const int size : shape.hidden_sizes)
    if (shape.bottleneck && size % kReduction != 0)
      throw InvalidInput(fields.place("hidden_sizes"),
                         fmt::format("must be multiples of {} in bottlenecks", kReduction), std::to_string(size));
  return shape;
}

MobileNetShape mobilenet_shape_of(const std::filesystem::path& folder, const ConfigFields& fields) {
  MobileNetShape shape;
  shape.picture_size = transformers_picture_size(folder, fields);
  shape.depth_multiplier = small_factor(fields, "depth_multiplier", shape.depth_multiplier);
  shape.min_depth = small_number(fields, "min_depth", shape.min_depth);
  shape.tf_padding = fields.flag("tf_padding", shape.tf_padding);
  shape.norm_epsilon = fields.number("layer_norm_eps", shape.norm_epsilon);
  const Json& activation = fields.given("hidden_act");
  if (!activation.is_null() && activation != "relu" && activation != "relu6")
    throw InvalidInput(fields.place("hidden_act"), "must be relu6 or relu: other values are not supported",
                       activation.dump());
  shape.relu6 = activation != "relu";
  return shape;
}

MobileNetV2Shape mobilenet_v2_shape_of(const std::filesystem::path& folder, const ConfigFields& fields) {
  MobileNetV2Shape shape{.common = mobilenet_shape_of(folder, fields)};
  shape.depth_divisible_by = small_number(fields, "depth_divisible_by", shape.depth_divisible_by);
  shape.expand_ratio = small_factor(fields, "expand_ratio", shape.expand_ratio);
  shape.finegrained_output = fields.flag("finegrained_output", shape.finegrained_output);
  shape.first_layer_is_expansion = fields.flag("first_layer_is_expansion", shape.first_layer_is_expansion);
  return shape;
}

/// Marks fields as known that timm, and transformers' wrapper of it, write in addition to the shape, and that do not
/// change a classifier.
void accept_unused_timm_fields(const ConfigFields& fields) {
  for (const char* const note : {"do_pooling", "label_descriptions", "label_names", "num_features"}) fields.given(note);
}

int vgg_picture_size(const ConfigFields& fields) {
  const std::string place = fields.place("pretrained_cfg.input_size");
  const Json given = fields.object("pretrained_cfg").value("input_size", Json());
  if (given.is_null()) return NetShape().picture_size;
  if (!given.is_array() || given.size() != 3 || given[0] != 3 || given[1] != given[2])
    throw InvalidInput(place, "must be [3, PIXELS, PIXELS]", given.dump());
  const int size = picture_size_from(given[1], place);
  if (size < kSmallestVggPicture || size > kLargestVggPicture)
    throw InvalidInput(place, fmt::format("must be {} to {} pixels for a VGG", kSmallestVggPicture, kLargestVggPicture),
                       std::to_string(size));
  return size;
}

/// Throws InvalidInput if model_args or global_pool would change the net.
void require_usual_vgg(const ConfigFields& fields) {
  const Json arguments = fields.object("model_args"), &pooling = fields.given("global_pool");
  for (const auto& [key, value] : arguments.items()) {
    const bool is_known = key == "drop_rate" || (key == "num_classes" && value == fields.given("num_classes")) ||
                          (key == "global_pool" && value == "avg") || (key == "in_chans" && value == 3) ||
                          (key == "mlp_ratio" && value == 1);
    if (!is_known)
      throw InvalidInput(
          fields.place("model_args.") + key,
          key == "num_classes" ? "must be the num_classes beside model_args" : "must not be given: it is not supported",
          value.dump());
  }
  if (!pooling.is_null() && pooling != "avg")
    throw InvalidInput(fields.place("global_pool"), "must be avg: other values are not supported", pooling.dump());
}

VggShape vgg_shape_of(const ConfigFields& fields) {
  const std::string architecture = fields.text("architecture");
  const auto depths = kVggDepths.find(architecture);
  if (depths == kVggDepths.end())
    throw InvalidInput(fields.place("architecture"), "must be vgg11_bn, vgg13_bn, vgg16_bn or vgg19_bn",
                       "\"" + architecture + "\"");
  accept_unused_timm_fields(fields);
  require_usual_vgg(fields);
  VggShape shape{.picture_size = vgg_picture_size(fields), .depths = depths->second};
  shape.num_classes = small_number(fields, "num_classes", shape.num_classes);
  const int features = shape.hidden_sizes.back(), usual = shape.classifier_size.value(),
            read = small_number(fields, "head_hidden_size", usual);
  if (read != usual && read != features)
    throw InvalidInput(fields.place("head_hidden_size"),
                       fmt::format("must be {}, of two linear layers before the last, or {}, of none", usual, features),
                       std::to_string(read));
  if (read == features) shape.classifier_size.reset();
  return shape;
}

/// Returns the number of labels of a config.json: of the names in id2label (label_names in timm's files), else
/// num_labels, else `otherwise`.
int num_labels_of(const ConfigFields& fields, int otherwise) {
  for (const char* const key : {"id2label", "label_names"})
    if (const Json& names = fields.given(key); names.is_structured() && !names.empty())
      return static_cast<int>(names.size());
  return small_number(fields, "num_labels", otherwise);
}

}  // namespace

std::optional<NetKind> find_net_kind(const Json& config) {
  if (!config.is_object()) return std::nullopt;
  const Json type = config.value("model_type", Json()), architecture = config.value("architecture", Json());
  if (type == "resnet") return NetKind::resnet;
  if (architecture.is_string() && architecture.get<std::string>().starts_with("vgg")) return NetKind::vgg;
  if (type == "mobilenet_v1") return NetKind::mobilenet;
  if (type == "mobilenet_v2") return NetKind::mobilenet_v2;
  return std::nullopt;
}

NetKind net_kind_of(const ConfigFields& fields, const std::string& file) {
  const auto kind = find_net_kind(fields.json());
  if (!kind)
    throw InvalidInput(file,
                       "must be of a net: model_type resnet, mobilenet_v1 or mobilenet_v2, or timm's architecture "
                       "vgg16_bn",
                       "of none");
  return *kind;
}

NetShape net_from_config(NetKind kind, const std::string& name, const std::filesystem::path& folder,
                         const ConfigFields& fields) {
  switch (kind) {
    case NetKind::resnet:
      return resnet(name, resnet_shape_of(folder, fields));
    case NetKind::vgg:
      return vgg(name, vgg_shape_of(fields));
    case NetKind::mobilenet:
      return mobilenet(name, mobilenet_shape_of(folder, fields));
    case NetKind::mobilenet_v2:
      return mobilenet_v2(name, mobilenet_v2_shape_of(folder, fields));
  }
  throw InternalError("an unknown kind of net");
}

void require_possible(const NetShape& net, const std::string& file) {
  const auto require = [&](const NetLayer& layer, const char* what, double value, double most) {
    if (value > most)
      throw InvalidInput(fmt::format("{}: layer {}: {}", file, layer.name, what), fmt::format("must be <= {:g}", most),
                         fmt::format("{:g}", value));
  };
  for (const NetLayer& layer : net.layers) {
    const double pixels = 1.0 * layer.out_size * layer.out_size,
                 weights = 1.0 * layer.in_channels / layer.groups * layer.out_channels * layer.kernel * layer.kernel;
    require(layer, "the outputs for a sample", pixels * layer.out_channels, kMaxValues);
    if (is_pooling(layer)) continue;
    require(layer, "the weights", weights, kMaxValues);
    require(layer, "the multiply-adds for a sample", weights * pixels, kMaxMultiplyAdds);
  }
}

NetShape read_net(const std::filesystem::path& file_or_folder) {
  const std::filesystem::path path = std::filesystem::is_directory(file_or_folder) ? file_or_folder / "config.json"
                                                                                   : file_or_folder,
                              folder = path.parent_path();
  const std::string file = path.string(), text = read_text_file(path);
  const ConfigFields fields(text, file);
  const std::string name = std::filesystem::absolute(path).lexically_normal().parent_path().filename().string();
  NetShape net = net_from_config(net_kind_of(fields, file), name.empty() ? "net" : name, folder, fields);
  net.layers.back().out_channels = num_labels_of(fields, net.layers.back().out_channels);
  fields.require_known();
  require_possible(net, file);
  return net;
}

}  // namespace frostpipe
