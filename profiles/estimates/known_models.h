#pragma once
#include <span>
#include <string>

namespace frostpipe {

/// A well-known model under a short name.
struct KnownModel {
  const char* name;
  int tokens;          // per sample; 0 = the longest that the model allows, see find_model
  const char* config;  // the part of its published config.json that determines how much is computed
};

std::span<const KnownModel> known_models();

/// Returns "gpt2, -medium, -large, ...": a name is shortened if the one before it has the same beginning.
std::string known_model_names();

}  // namespace frostpipe
