#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace frostpipe {

/// How pixels in [0, 1] become a model's input, by channel: (pixel - mean) / deviation.
struct Normalisation {
  std::array<float, 3> mean{0.5f, 0.5f, 0.5f}, deviation{0.5f, 0.5f, 0.5f};
};

/// Changed where `json` has the key. Throws InvalidInput unless it has three numbers, `positive` ones > 0.
void read_three(const nlohmann::json& json, const std::string& file, const char* key, bool positive,
                std::array<float, 3>& into);

/// image_mean and image_std of preprocessor_config.json; 0.5 without one, as ViT's own. Throws InvalidInput naming the
/// file and the field.
Normalisation read_normalisation(const std::filesystem::path& model_folder);

/// preprocessor_config.json for transformers: what was computed here, and whatever else the folder's own says.
std::string preprocessor_config(const std::filesystem::path& model_folder, std::int64_t image_size);

}  // namespace frostpipe
