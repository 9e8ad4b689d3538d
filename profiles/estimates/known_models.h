#pragma once
#include <span>
#include <string>

namespace frostpipe {

/// A model that people ask about by a short name.
struct KnownModel {
  const char* name;
  int tokens;          // of a sample; 0: as long as the model allows, see find_model
  const char* config;  // its published config.json: what decides how much is computed
};

std::span<const KnownModel> known_models();

/// "gpt2, gpt2-medium, ..."
std::string known_model_names();

}  // namespace frostpipe
