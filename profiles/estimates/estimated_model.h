#pragma once
#include <string>

#include "profiles/transformer/transformer_config.h"

namespace frostpipe {

/// A model whose operations are counted, for samples of `tokens` tokens.
struct EstimatedModel {
  std::string name;
  TransformerConfig config;
  int tokens = 0;
};

/// Reads the model that a Hugging Face config.json describes (profiles/transformer). `tokens` = 0: the longest that the
/// model allows, but at most 8192; for an image model, those of an image. Throws InvalidInput that names the field,
/// also if a field changes how much is computed in a way that is not supported (profiles/computed_fields.h), and for
/// implausible sizes.
EstimatedModel model_from_config(const std::string& json, const std::string& source, int tokens);

/// Returns a model of known_models() by name, or the one described by a config.json or by the folder that holds it.
EstimatedModel find_model(const std::string& name_or_file, int tokens);

}  // namespace frostpipe
