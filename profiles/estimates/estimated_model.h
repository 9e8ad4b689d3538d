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

/// Reads the model that a Hugging Face config.json describes (profiles/transformer). If `tokens` is 0, samples are the
/// longest that the model allows, but of at most 8192 tokens; for an image model, they have the tokens of an image.
/// Throws InvalidInput that names the field, also if a field changes how much is computed in a way that is not
/// supported (profiles/computed_fields.h), and for implausible sizes.
EstimatedModel model_from_config(const std::string& json, const std::string& source, int tokens);

/// Returns a model of known_models() by name, or the one described by a config.json or by the folder that holds it. The
/// case of letters in a name does not matter unless a file has that name.
EstimatedModel find_model(const std::string& name_or_file, int tokens);

}  // namespace frostpipe
