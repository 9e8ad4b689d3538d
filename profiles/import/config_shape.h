#pragma once
#include <string>
#include <string_view>

#include "profiles/estimate.h"

namespace frostpipe {

/// The shape that a Hugging Face config.json describes: model_type bert, vit or gpt2. `tokens` 0 = as long as the model
/// allows (ViT: what the image has). Throws InvalidInput that names the field; also where one changes how much is
/// computed in a way that is not counted here (profiles/computed_fields.h).
TransformerShape shape_from_config(std::string_view json, std::string_view source, int tokens);

/// One of known_shapes() by name, or what a config.json, or the folder that holds it, describes.
TransformerShape find_shape(const std::string& name_or_file, int tokens);

}  // namespace frostpipe
