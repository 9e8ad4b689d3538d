#include "profiles/computed_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "base/parse_json.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;

struct ComputedField {
  std::vector<std::string_view> model_types;
  const char* name;
  const char* value;   // the only supported value, as JSON
  bool changes_count;  // other values change the operations or parameters, so counting does not support them either
};

using ModelTypes = std::vector<std::string_view>;

ModelTypes operator+(ModelTypes one, const ModelTypes& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

const ModelTypes kGemmas{"gemma", "gemma2", "gemma3_text"},
    kDecoders = ModelTypes{"gpt2", "llama", "mistral", "qwen2", "qwen3", "olmo2", "phi3", "gpt_neox"} + kGemmas,
    kBerts{"bert", "roberta", "xlm-roberta", "camembert", "electra"},
    kEncoders = kBerts + ModelTypes{"distilbert", "modernbert"}, kPictures{"vit", "deit", "dinov2"},
    kNets{"resnet", "mobilenet_v1", "mobilenet_v2"}, kExperts{"mixtral", "qwen3_moe", "olmoe", "deepseek_v3"},
    kAll = kExperts + kEncoders + kDecoders + kPictures + kNets;

const ComputedField kComputedFields[] = {
    {{"resnet"}, "hidden_act", "\"relu\"", false},
    {kBerts, "position_embedding_type", "\"absolute\"", true},
    {kBerts, "is_decoder", "false", false},
    {kBerts + ModelTypes{"gpt2"}, "add_cross_attention", "false", true},
    {{"gpt2"}, "scale_attn_weights", "true", false},
    {{"gpt2"}, "scale_attn_by_inverse_layer_idx", "false", false},
    {{"qwen3_moe"}, "decoder_sparse_step", "1", true},
    {{"qwen3_moe"}, "mlp_only_layers", "[]", true},
    {{"deepseek_v3"}, "moe_layer_freq", "1", true},
    {{"modernbert"}, "classifier_pooling", "\"cls\"", false},
    {kGemmas, "use_bidirectional_attention", "false", false},
    {kPictures + kNets, "num_channels", "3", false},
    {{"mobilenet_v2"}, "output_stride", "32", false},
    {kBerts + ModelTypes{"vit", "gpt2", "distilbert"}, "pruned_heads", "{}", true},
    {kAll, "per_layer_config", "{}", true},
    {kAll, "quantization_config", "null", true},
};

/// An alternative name of a field that transformers accepts for a family and prefers.
struct OtherName {
  std::string_view model_type;
  const char *name, *field;
};

const OtherName kOtherNames[] = {
    {"gpt2", "hidden_size", "n_embd"},
    {"gpt2", "max_position_embeddings", "n_positions"},
    {"gpt2", "num_attention_heads", "n_head"},
    {"gpt2", "num_hidden_layers", "n_layer"},
};

Json given(const Json& config, const char* name) { return config.value(name, Json()); }

}  // namespace

void require_computed_fields(std::string_view text, const std::string& file, ConfigUse use) {
  const Json config = parse_json<Json>(text, file);
  if (!config.is_object()) throw InvalidInput(file, "must be a JSON object", "something else");
  const Json type = given(config, "model_type");
  for (const ComputedField& field : kComputedFields) {
    if (std::ranges::find(field.model_types, type) == field.model_types.end()) continue;
    if (use == ConfigUse::counting && !field.changes_count) continue;
    const Json value = given(config, field.name);
    if (!value.is_null() && value != Json::parse(field.value))
      throw InvalidInput(fmt::format("{}: {}", file, field.name),
                         fmt::format("must be {}: another one is not computed here", field.value), value.dump());
  }
  for (const OtherName& other : kOtherNames) {
    const Json value = given(config, other.name), known = given(config, other.field);
    if (type == other.model_type && !value.is_null() && value != known)
      throw InvalidInput(fmt::format("{}: {}", file, other.name),
                         fmt::format("must be that of {}, which is read ({})", other.field,
                                     known.is_null() ? "missing" : known.dump()),
                         value.dump());
  }
}

}  // namespace frostpipe
