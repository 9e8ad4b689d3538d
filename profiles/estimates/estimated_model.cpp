#include "profiles/estimates/estimated_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/spelling.h"
#include "profiles/estimates/known_models.h"
#include "profiles/model_source.h"
#include "profiles/transformer/families.h"
#include "profiles/transformer/read_config.h"

namespace frostpipe {
namespace {

constexpr std::int64_t kMaxTokensByDefault = 8192;

int tokens_of(const TransformerConfig& config, int asked) {
  if (config.reads_pictures) {
    const auto tokens = static_cast<int>(image_tokens(config));
    if (asked > 0 && asked != tokens)
      throw InvalidInput("--tokens", fmt::format("must be {} (patches and class tokens)", tokens),
                         std::to_string(asked));
    return tokens;
  }
  const std::int64_t longest = config.max_position_embeddings;
  if (asked > longest)
    throw InvalidInput("--tokens", fmt::format("must be at most {}, the model's positions", longest),
                       std::to_string(asked));
  return asked > 0 ? asked : static_cast<int>(std::min(longest, kMaxTokensByDefault));
}

/// Throws InvalidInput unless the products of an estimate fit into 64 bits and into the bounds of a profile.
void require_possible(const TransformerConfig& c, double tokens, const std::string& source) {
  const auto require = [&](std::string_view what, double value, double most) {
    if (value > most)
      throw InvalidInput(source, fmt::format("{} must be at most {:g}", what, most), fmt::format("{:g}", value));
  };
  const auto product = [](auto... factors) { return (1.0 * ... * static_cast<double>(factors)); };
  const std::int64_t heads = c.num_attention_heads,
                     pixels = c.reads_pictures ? c.num_channels * c.patch_size * c.patch_size : 1;
  require("the hidden size", product(c.hidden_size), 1 << 20);
  require("the MLP's size", product(c.intermediate_size), 1 << 20);
  require("the experts' parameters of a layer", product(c.experts.count, c.experts.intermediate_size, c.hidden_size),
          1e12);
  require("the size of the shared experts", product(c.experts.shared_size), 1 << 20);
  require("the latents' sizes", product(c.latent.query_rank) + product(c.latent.key_value_rank), 1 << 20);
  require("attention heads x head size", product(heads, c.size_of_head()), 1 << 20);
  require("the embeddings' rows", product(c.vocab_size) + product(c.max_position_embeddings), 1 << 26);
  require("the embeddings' parameters",
          product(c.vocab_size + c.max_position_embeddings + c.type_vocab_size + pixels, c.table_size()), 1e13);
  require("heads x tokens^2, the values of attention's probabilities in a layer,", product(heads, tokens, tokens),
          1e13);
  require("tokens x the widest activation of a layer", tokens * product(std::max(c.hidden_size, c.intermediate_size)),
          1e13);
  require("tokens x outputs", tokens * product(std::max(c.num_labels, c.vocab_size)), 1e13);
}

}  // namespace

EstimatedModel model_from_config(const std::string& json, const std::string& source, int tokens) {
  const TransformerConfig config = config_from_json(json, source, ConfigUse::counting);
  const int counted = tokens_of(config, tokens);
  require_possible(config, counted, source);
  return {to_string(config.family), config, counted};
}

EstimatedModel find_model(const std::string& name_or_file, int tokens) {
  auto known = std::ranges::find(known_models(), name_or_file, &KnownModel::name);
  if (known == known_models().end() && !std::filesystem::exists(name_or_file))
    known = std::ranges::find_if(known_models(),
                                 [&](const KnownModel& one) { return equal_ignoring_case(one.name, name_or_file); });
  if (known != known_models().end()) {
    EstimatedModel model = model_from_config(known->config, known->name, tokens > 0 ? tokens : known->tokens);
    model.name = known->name;
    return model;
  }
  if (!std::filesystem::exists(name_or_file))
    throw InvalidInput(name_or_file,
                       fmt::format("must be one of {}, or a config.json or its folder{}", known_model_names(),
                                   how_to_fetch(name_or_file)),
                       "neither");
  const std::string file = std::filesystem::is_directory(name_or_file)
                               ? (std::filesystem::path(name_or_file) / "config.json").string()
                               : name_or_file;
  return model_from_config(read_text_file(file), file, tokens);
}

}  // namespace frostpipe
