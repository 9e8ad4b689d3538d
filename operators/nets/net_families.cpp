#include "operators/nets/net_families.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/parse_json.h"
#include "executor/models/folder/model_config.h"
#include "operators/nets/net_folder.h"

namespace frostpipe {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostPixels = 4096;  // on a side

}  // namespace

const NetFamily* find_net_family(const Json& config) {
  if (!config.is_object()) return nullptr;
  for (const NetFamily* family : {&kResNet, &kVgg, &kMobileNet, &kMobileNetV2})
    if (family->is_of(config)) return family;
  return nullptr;
}

int small_number(const ConfigFields& fields, const char* key, int otherwise, const std::string& file) {
  constexpr int kMost = 1 << 16;
  const std::int64_t value = fields.positive(key, otherwise);
  if (value > kMost)
    throw InvalidInput(file + ": " + key, fmt::format("must be at most {}", kMost), std::to_string(value));
  return static_cast<int>(value);
}

int picture_size_from(const Json& pixels, const std::string& place) {
  const auto is_size = [](const Json& value) {
    return value.is_number_integer() && value.get<std::int64_t>() >= 1 && value.get<std::int64_t>() <= kMostPixels;
  };
  Json size = pixels;
  if (pixels.is_object() && pixels.contains("shortest_edge")) size = pixels["shortest_edge"];
  if (pixels.is_object() && pixels.contains("height") && pixels.value("width", Json()) == pixels["height"])
    size = pixels["height"];
  if (!is_size(size))
    throw InvalidInput(
        place,
        fmt::format("must be a number of pixels up to {}, as shortest_edge or as equal height and width", kMostPixels),
        pixels.dump());
  return size.get<int>();
}

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

void write_transformers_config(const NetFolder& source, const char* architecture, const std::filesystem::path& target) {
  auto config = parse_json<Json>(read_text_file(source.path / "config.json"), (source.path / "config.json").string());
  config["architectures"] = {architecture};
  config["dtype"] = "float32";
  config.erase("torch_dtype");
  if (config.contains("image_size")) config["image_size"] = source.net.picture_size;
  set_label_names(config, source.label_names);
  write_file_atomically(target / "config.json", config.dump(2) + "\n");
  write_file_atomically(target / "preprocessor_config.json", preprocessor_config(source.path, source.net.picture_size));
}

}  // namespace frostpipe
