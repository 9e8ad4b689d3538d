#pragma once
#include <filesystem>
#include <string>

namespace frostpipe {

/// Returns " (a model of the Hugging Face Hub is fetched with: ...)", to append to an error about `name` if it could be
/// the name of such a model; else "".
std::string how_to_fetch(const std::filesystem::path& name);

/// Throws InvalidInput if `path` is not a folder, or is that of an adapter without its base model. The message says how
/// to fetch a model of that name, or to merge the adapter.
void require_model_folder(const std::filesystem::path& path);

}  // namespace frostpipe
