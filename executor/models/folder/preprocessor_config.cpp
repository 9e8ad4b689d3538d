#include "executor/models/folder/preprocessor_config.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/parse_json.h"

namespace frostpipe {
namespace {

constexpr const char* kPreprocessor = "preprocessor_config.json";

/// Returns an empty object if the folder has none.
nlohmann::json read_preprocessor(const std::filesystem::path& model_folder) {
  const std::filesystem::path path = model_folder / kPreprocessor;
  if (!std::filesystem::exists(path)) return nlohmann::json::object();
  const std::string text = read_text_file(path);
  nlohmann::json json = parse_json<nlohmann::json>(text, path.string());
  if (!json.is_object()) throw InvalidInput(path.string(), "must be a JSON object", "something else");
  return json;
}

}  // namespace

void read_three(const nlohmann::json& json, const std::string& file, const char* key, bool positive,
                std::array<float, 3>& into) {
  if (!json.contains(key)) return;
  const nlohmann::json& given = json[key];
  bool fits = given.is_array() && given.size() == 3;
  for (std::size_t i = 0; fits && i < 3; ++i) {
    fits = given[i].is_number() && (!positive || given[i].get<float>() > 0);
    if (fits) into[i] = given[i].get<float>();
  }
  if (!fits)
    throw InvalidInput(file + ": " + key, positive ? "must be three numbers > 0" : "must be three numbers",
                       given.dump().substr(0, 80));
}

Normalisation read_normalisation(const std::filesystem::path& model_folder) {
  const nlohmann::json json = read_preprocessor(model_folder);
  const std::string file = (model_folder / kPreprocessor).string();
  Normalisation normalisation;
  read_three(json, file, "image_mean", false, normalisation.mean);
  read_three(json, file, "image_std", true, normalisation.deviation);
  return normalisation;
}

std::string preprocessor_config(const std::filesystem::path& model_folder, std::int64_t image_size) {
  const Normalisation normalisation = read_normalisation(model_folder);
  nlohmann::json json = read_preprocessor(model_folder);
  json.erase("feature_extractor_type");
  json["image_processor_type"] = "ViTImageProcessor";
  for (const char* done : {"do_resize", "do_rescale", "do_normalize"}) json[done] = true;
  for (const char* not_done : {"do_center_crop", "do_pad"})
    if (json.contains(not_done)) json[not_done] = false;
  json["size"] = {{"height", image_size}, {"width", image_size}};
  json["resample"] = 2;  // bilinear
  json["rescale_factor"] = 1.0 / 255;
  json["image_mean"] = normalisation.mean;
  json["image_std"] = normalisation.deviation;
  return json.dump(2) + "\n";
}

}  // namespace frostpipe
