#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace frostpipe {

/// The conversion of pixels in [0, 1] to a model's input, per channel: (pixel - mean) / deviation.
struct Normalisation {
  std::array<float, 3> mean{0.5f, 0.5f, 0.5f}, deviation{0.5f, 0.5f, 0.5f};
};

/// Sets `into` if `json` has the key. Throws InvalidInput unless it has three numbers, which must be > 0 with
/// `positive`.
void read_three(const nlohmann::json& json, const std::string& file, const char* key, bool positive,
                std::array<float, 3>& into);

/// Reads image_mean and image_std of preprocessor_config.json; without one returns 0.5, as for ViT. Throws InvalidInput
/// that names the file and the field.
Normalisation read_normalisation(const std::filesystem::path& model_folder);

/// Returns a preprocessor_config.json for transformers: the settings used here, and all others from the folder's own.
std::string preprocessor_config(const std::filesystem::path& model_folder, std::int64_t image_size);

}  // namespace frostpipe
