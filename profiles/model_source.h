#pragma once
#include <filesystem>
#include <string>

namespace frostpipe {

/// " (a model of the Hugging Face Hub is fetched with: ...)", to be put after a rule that the name of such a model
/// breaks; nothing for what cannot be one.
std::string how_to_fetch(const std::filesystem::path& name);

/// Throws InvalidInput unless `path` is a folder; says how the name of such a model becomes one.
void require_model_folder(const std::filesystem::path& path);

}  // namespace frostpipe
