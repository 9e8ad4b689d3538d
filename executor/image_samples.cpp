#include "executor/image_samples.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "executor/job/hash.h"
#include "profiles/error.h"
#include "profiles/files.h"
#include "profiles/json_nesting.h"

namespace frostpipe {
namespace {

constexpr const char* kPreprocessor = "preprocessor_config.json";

/// Empty where the folder has none.
nlohmann::json read_preprocessor(const std::filesystem::path& model_folder) {
  const std::filesystem::path path = model_folder / kPreprocessor;
  if (!std::filesystem::exists(path)) return nlohmann::json::object();
  const std::string text = read_text_file(path);
  require_shallow_json(text, path.string());
  nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) throw InvalidInput(path.string(), "must be a JSON object", "something else");
  return json;
}

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

}  // namespace

void read_normalisation(const std::filesystem::path& model_folder, ImageInput& input) {
  const nlohmann::json json = read_preprocessor(model_folder);
  const std::string file = (model_folder / kPreprocessor).string();
  read_three(json, file, "image_mean", false, input.mean);
  read_three(json, file, "image_std", true, input.deviation);
}

std::string preprocessor_config(const std::filesystem::path& model_folder, std::int64_t image_size) {
  ImageInput input;
  read_normalisation(model_folder, input);
  nlohmann::json json = read_preprocessor(model_folder);
  json.erase("feature_extractor_type");
  json["image_processor_type"] = "ViTImageProcessor";
  for (const char* done : {"do_resize", "do_rescale", "do_normalize"}) json[done] = true;
  for (const char* not_done : {"do_center_crop", "do_pad"})
    if (json.contains(not_done)) json[not_done] = false;
  json["size"] = {{"height", image_size}, {"width", image_size}};
  json["resample"] = 2;  // bilinear
  json["rescale_factor"] = 1.0 / 255;
  json["image_mean"] = input.mean;
  json["image_std"] = input.deviation;
  return json.dump(2) + "\n";
}

ImageSamples::ImageSamples(std::vector<ImageData> parts, ImageInput input) : parts_(std::move(parts)), input_(input) {
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    for (int i = 0; i < parts_[part].size(); ++i) place_.emplace_back(static_cast<int>(part), i);
  }
}

Image ImageSamples::picture(int sample) const {
  const auto [part, number] = place_[sample];
  const Image image = parts_[part].load(number);
  return image.height == input_.size && image.width == input_.size ? image : resize(image, input_.size, input_.size);
}

std::uint64_t ImageSamples::key(int sample) const {
  const auto [part, number] = place_[sample];
  const std::array<int, 3> parts{part, number, parts_[part].label(number)};
  return hash_bytes(std::as_bytes(std::span(parts)));
}

std::uint64_t ImageSamples::fingerprint() const {
  StreamHash hash;
  const std::array<int, 3> changes{input_.size, input_.augmentation.crop_padding, input_.augmentation.flip};
  hash.add(std::as_bytes(std::span(changes)));
  hash.add(std::as_bytes(std::span(input_.mean)));
  hash.add(std::as_bytes(std::span(input_.deviation)));
  for (const ImageData& part : parts_) {
    hash.add(std::as_bytes(std::span(part.fingerprint())));
  }
  for (int sample = 0; sample < size(); ++sample) {
    const std::uint64_t own = key(sample);
    hash.add(std::as_bytes(std::span(&own, 1)));
  }
  return hash.value();
}

MicroBatch ImageSamples::load(const MiniBatch& batch, std::span<const int> samples, at::ScalarType type,
                              bool with_input) const {
  const auto count = static_cast<std::int64_t>(samples.size());
  at::Tensor labels = at::empty({count}, at::kLong);
  at::Tensor pixels = with_input ? at::empty({count, 3, input_.size, input_.size}, at::kFloat) : at::Tensor();
  const std::size_t values = static_cast<std::size_t>(3) * input_.size * input_.size;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto [part, number] = place_[samples[i]];
    labels.data_ptr<std::int64_t>()[i] = parts_[part].label(number);
    if (!with_input) continue;
    Image image = picture(samples[i]);
    if (batch.epoch >= 0) image = augment(image, input_.augmentation, input_.seed, batch.epoch, samples[i]);
    normalise(image, input_.mean, input_.deviation,
              {pixels.data_ptr<float>() + static_cast<std::size_t>(i) * values, values});
  }
  return {.lengths = std::vector<std::int64_t>(samples.size(), input_.tokens),
          .input = with_input ? pixels.to(type) : pixels,
          .token_types = {},
          .labels = labels,
          .dropout_keys = dropout_keys(batch, samples),
          .type = type};
}

}  // namespace frostpipe
