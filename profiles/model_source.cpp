#include "profiles/model_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/error.h"

namespace frostpipe {
namespace {

/// Returns whether the path could be a model's name such as "bert-base-uncased" or "google-bert/bert-base-uncased".
bool may_be_a_hub_name(const std::filesystem::path& path) {
  const std::string name = path.string();
  const auto fits = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.' || c == '/'; };
  const bool has_two_parts_at_most = std::count(name.begin(), name.end(), '/') <= 1 && !name.ends_with('/');
  return !name.empty() && std::isalnum(static_cast<unsigned char>(name.front())) && has_two_parts_at_most &&
         !name.ends_with(".json") && std::all_of(name.begin(), name.end(), fits);
}

}  // namespace

std::string how_to_fetch(const std::filesystem::path& name) {
  if (!may_be_a_hub_name(name)) return {};
  return fmt::format(" (a model of the Hugging Face Hub is fetched with: hf download {} --local-dir {})", name.string(),
                     name.filename().string());
}

void require_model_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path / "adapter_config.json", ignored) &&
      !std::filesystem::exists(path / "config.json", ignored))
    throw InvalidInput(path.string(),
                       "must be the folder of a whole model (merge the adapter into its base model with peft's "
                       "merge_and_unload, and save the result with save_pretrained)",
                       "that of an adapter");
  if (std::filesystem::is_directory(path, ignored)) return;
  const bool exists = std::filesystem::exists(path, ignored);
  throw InvalidInput(
      path.string(),
      "must be the folder of a model, with its config.json, weights and tokenizer" + (exists ? "" : how_to_fetch(path)),
      exists ? "a file" : "not there");
}

}  // namespace frostpipe
