#pragma once
#include <string>
#include <string_view>

namespace frostpipe {

/// What a config.json is read for.
enum class ConfigUse {
  computing,  // the model itself
  counting,   // its operations and parameters
};

/// Throws InvalidInput that names file, field, rule and value where `text`, the Hugging Face config.json `file`, gives
/// a field a value that changes what the model computes, or for counting how much, and that is not the one known here.
/// Fields that are missing or null have transformers' default, which is.
///
/// Not refused are fields that are read, and those that change nothing here: use_cache, output_*,
/// chunk_size_feed_forward and reorder_and_upcast_attn (the same formula in other roundings), GPT-2's summary_* and
/// ViT's pooler_* and encoder_stride (of heads that are not here), dropouts (--dropout says them).
void require_computed_fields(std::string_view text, const std::string& file, ConfigUse use);

}  // namespace frostpipe
