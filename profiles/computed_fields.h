#pragma once
#include <string>
#include <string_view>

namespace frostpipe {

/// The purpose for which a config.json is read.
enum class ConfigUse {
  computing,  // to run the model
  counting,   // to count its operations and parameters
};

/// Throws InvalidInput that names file, field, rule and value if `text`, the Hugging Face config.json `file`, gives a
/// field an unsupported value that changes what the model computes, or for counting how much it computes. Fields that
/// are missing or null have transformers' default, which is supported.
///
/// Accepted are fields that are read, and those that change nothing here: use_cache, output_*, chunk_size_feed_forward
/// and reorder_and_upcast_attn (the same formula with other rounding), GPT-2's summary_* and ViT's pooler_* and
/// encoder_stride (of heads that are not supported), dropouts (--dropout sets them).
void require_computed_fields(std::string_view text, const std::string& file, ConfigUse use);

}  // namespace frostpipe
