#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

namespace frostpipe {

/// The tokens that end what a folder's model writes: eos_token_id of generation_config.json, else of config.json, one
/// or several; none where neither says any. Throws InvalidInput that names the file and the field.
std::vector<std::int32_t> end_tokens_in(const std::filesystem::path& model_folder);

}  // namespace frostpipe
