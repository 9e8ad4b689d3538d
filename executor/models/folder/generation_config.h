#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

namespace frostpipe {

/// Returns the tokens that end generation: eos_token_id of generation_config.json, else of config.json, one or several;
/// empty if neither has any. Throws InvalidInput that names the file and the field.
std::vector<std::int32_t> end_tokens_in(const std::filesystem::path& model_folder);

}  // namespace frostpipe
