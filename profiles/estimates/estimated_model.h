#pragma once
#include <string>

#include "profiles/transformer/transformer_config.h"

namespace frostpipe {

/// A model whose operations are counted, on samples of `tokens` tokens.
struct EstimatedModel {
  std::string name;
  TransformerConfig config;
  int tokens = 0;
};

/// What a Hugging Face config.json describes (profiles/transformer). `tokens` 0: as long as the model allows, but at
/// most 8192; of a picture, what it has. Throws InvalidInput that names the field; also where one changes how much is
/// computed in a way that is not counted here (profiles/computed_fields.h), and for sizes that no model has.
EstimatedModel model_from_config(const std::string& json, const std::string& source, int tokens);

/// One of known_models() by name, or what a config.json, or the folder that holds it, describes.
EstimatedModel find_model(const std::string& name_or_file, int tokens);

}  // namespace frostpipe
