#include "profiles/transformer/read_family.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error.h"

namespace frostpipe {
namespace {

Activation activation_named(const ConfigFields& fields, const char* key, const char* otherwise) {
  static constexpr std::pair<const char*, Activation> kNames[] = {{"gelu", Activation::gelu},
                                                                  {"gelu_new", Activation::gelu_tanh},
                                                                  {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                                                  {"gelu_fast", Activation::gelu_tanh},
                                                                  {"silu", Activation::silu},
                                                                  {"swish", Activation::silu},
                                                                  {"relu", Activation::relu}};
  const std::string given = fields.text(key), name = given.empty() ? otherwise : given;
  for (const auto& [known, activation] : kNames)
    if (name == known) return activation;
  std::vector<std::string> known;
  for (const auto& [one, activation] : kNames) known.push_back(one);
  throw InvalidInput(fields.place(key), fmt::format("must be one of {}", fmt::join(known, ", ")), name);
}

/// Returns the width of DINOv2's MLP: config.json gives its ratio to the hidden size; with a gate it is two thirds of
/// that, rounded up to a multiple of 8.
std::int64_t mlp_size(const ConfigFields& fields, const TransformerConfig& config) {
  const double ratio = fields.number("mlp_ratio", 4), size = static_cast<double>(config.hidden_size) * ratio;
  if (!(size >= 1 && size <= static_cast<double>(kMaxConfigNumber)))
    throw InvalidInput(fields.place("mlp_ratio"), fmt::format("must give an MLP of 1 to {} values", kMaxConfigNumber),
                       fmt::format("{:g}", ratio));
  const auto wide = static_cast<std::int64_t>(size);
  return config.has_gate ? (static_cast<std::int64_t>(static_cast<double>(wide) * 2 / 3) + 7) / 8 * 8 : wide;
}

/// Reads the number of blocks, which is bounded, since TransformerConfig::patterns has an element for each.
std::int64_t num_blocks(const ConfigFields& fields, const char* key) {
  constexpr std::int64_t kMax = 4096;
  const std::int64_t blocks = fields.positive(key);
  if (blocks > kMax) throw InvalidInput(fields.place(key), fmt::format("must be <= {}", kMax), std::to_string(blocks));
  return blocks;
}

void read_sizes(const ConfigFields& fields, TransformerConfig& config) {
  config.hidden_size = fields.positive("hidden_size");
  config.num_hidden_layers = num_blocks(fields, "num_hidden_layers");
  config.num_attention_heads = fields.positive("num_attention_heads");
  if (config.family == Family::dinov2) {
    config.has_gate = fields.flag("use_swiglu_ffn", false);
    config.intermediate_size = mlp_size(fields, config);
  } else {
    config.intermediate_size = fields.positive("intermediate_size");
  }
}

void require_heads_that_divide(const ConfigFields& fields, const char* key, const TransformerConfig& config) {
  if (config.hidden_size % config.num_attention_heads != 0)
    throw InvalidInput(fields.place(key), fmt::format("must divide the hidden size ({})", config.hidden_size),
                       std::to_string(config.num_attention_heads));
}

/// Reads the number of positions. RoBERTa counts them from its padding id + 1, so it has that many fewer.
void read_positions(const ConfigFields& fields, TransformerConfig& config) {
  config.max_position_embeddings = fields.positive("max_position_embeddings");
  if (config.position_offset == 0) return;
  config.padding_id = fields.non_negative("pad_token_id", config.position_offset - 1);
  config.position_offset = *config.padding_id + 1;
  if (config.max_position_embeddings <= config.position_offset)
    throw InvalidInput(fields.place("max_position_embeddings"),
                       fmt::format("must be more than pad_token_id + 1 ({})", config.position_offset),
                       std::to_string(config.max_position_embeddings));
  config.max_position_embeddings -= config.position_offset;
}

/// Reads the id of the padding token. `otherwise` is what transformers takes if the field is missing; it counts if the
/// vocabulary, which must have been read, has it.
std::optional<std::int64_t> padding_id(const ConfigFields& fields, std::optional<std::int64_t> otherwise,
                                       const TransformerConfig& config) {
  const nlohmann::ordered_json& given = fields.given("pad_token_id");
  if (given.is_number_integer() && given < 0) return std::nullopt;  // early conversions of LLaMA give -1 for none
  if (!given.is_null()) return fields.non_negative("pad_token_id", 0);
  return fields.is_null("pad_token_id") || otherwise >= config.vocab_size ? std::nullopt : otherwise;
}

/// Reads the activation of a decoder. Gemma 2 and 3 have a field of their own. In Gemma 1's files gelu means its
/// approximation, as transformers 5 reads them.
Activation decoder_activation(const ConfigFields& fields, const TransformerConfig& config) {
  if (!config.norm_adds_one) return activation_named(fields, "hidden_act", "silu");
  if (config.family != Family::gemma) return activation_named(fields, "hidden_activation", "gelu_pytorch_tanh");
  const Activation given = activation_named(fields, "hidden_act", "gelu_pytorch_tanh");
  return given == Activation::gelu ? Activation::gelu_tanh : given;
}

bool has_head_size_of_its_own(Family family) {
  return family == Family::qwen3 || family == Family::gemma || family == Family::gemma2 ||
         family == Family::gemma3_text;
}

bool may_have_mlp_bias(Family family) {
  return family == Family::llama || family == Family::smollm3 || family == Family::granite;
}

/// The values that transformers takes for fields that a decoder's config.json does not have.
struct DecoderDefaults {
  std::int64_t key_value_heads = 0;  // 0 = one for each attention head
  std::int64_t positions = 2048;
  std::optional<std::int64_t> padding_id{};
  double theta = 10'000;  // base of the rotary frequencies
};

DecoderDefaults decoder_defaults(Family family) {
  switch (family) {
    case Family::mistral:
      return {.key_value_heads = 8, .positions = 131'072};
    case Family::mixtral:
      return {.key_value_heads = 8, .positions = 131'072, .theta = 1'000'000};
    case Family::smollm3:
      return {.key_value_heads = 4, .positions = 32'768, .padding_id = 128'004, .theta = 2'000'000};
    case Family::starcoder2:
      return {.key_value_heads = 2, .positions = 4096};
    case Family::qwen2:
    case Family::qwen3:
      return {.key_value_heads = 32, .positions = 32'768};
    case Family::qwen3_moe:
      return {.key_value_heads = 4, .positions = 32'768};
    case Family::gemma:
      return {.key_value_heads = 16, .positions = 8192, .padding_id = 0};
    case Family::gemma2:
      return {.key_value_heads = 4, .positions = 8192, .padding_id = 0};
    case Family::gemma3_text:
      return {.key_value_heads = 4, .positions = 131'072, .padding_id = 0, .theta = 1'000'000};
    case Family::phi3:
      return {.positions = 4096, .padding_id = 32'000};
    case Family::olmo2:
      return {.padding_id = 1};
    case Family::olmo3:
      return {.padding_id = 1, .theta = 500'000};
    case Family::olmoe:
      return {.key_value_heads = 16, .positions = 4096, .padding_id = 1};
    case Family::deepseek_v3:
      return {.key_value_heads = 128, .positions = 4096};
    default:
      return {};
  }
}

/// Returns whether the class of a text is read from the mean of its tokens, and not from the first one.
bool pools_tokens(const ConfigFields& fields) {
  const std::string pooling = fields.text("classifier_pooling");
  if (pooling.empty() || pooling == "cls") return false;
  if (pooling != "mean") throw InvalidInput(fields.place("classifier_pooling"), "must be cls or mean", pooling);
  return true;
}

/// Reads a number of which null means that there is none, returned as 0. `otherwise` is for a missing field.
double number_or_none(const ConfigFields& fields, const char* key, double otherwise) {
  return fields.is_null(key) ? 0 : fields.number(key, otherwise);
}

std::int64_t key_value_heads(const ConfigFields& fields, const TransformerConfig& config) {
  const std::int64_t otherwise = decoder_defaults(config.family).key_value_heads;
  const bool is_each = otherwise == 0 || fields.is_null("num_key_value_heads");
  return fields.positive("num_key_value_heads", is_each ? config.num_attention_heads : otherwise);
}

void read_heads(const ConfigFields& fields, TransformerConfig& config) {
  config.num_key_value_heads = key_value_heads(fields, config);
  if (config.num_attention_heads % config.num_key_value_heads != 0) {
    const bool is_given = !fields.given("num_key_value_heads").is_null();
    throw InvalidInput(fields.place("num_key_value_heads"),
                       fmt::format("must {}divide num_attention_heads ({})", is_given ? "" : "be given and ",
                                   config.num_attention_heads),
                       fmt::format("{}{}", config.num_key_value_heads, is_given ? "" : " if it is missing"));
  }
  const std::int64_t default_size = config.family == Family::qwen3 ? 128 : 256;
  if (has_head_size_of_its_own(config.family)) {
    config.head_size = fields.positive("head_dim", default_size);
  } else {
    config.head_size = fields.positive("head_dim", 0);
    if (config.head_size == 0) require_heads_that_divide(fields, "num_attention_heads", config);
  }
  if (config.size_of_head() % 2 != 0)
    throw InvalidInput(fields.place("head_dim"), "must be even: rotary positions rotate pairs of values",
                       std::to_string(config.size_of_head()));
}

}  // namespace

void read_bert(const ConfigFields& fields, TransformerConfig& config) {
  read_sizes(fields, config);
  require_heads_that_divide(fields, "num_attention_heads", config);
  config.vocab_size = fields.positive("vocab_size");
  read_positions(fields, config);
  config.type_vocab_size = fields.positive("type_vocab_size");
  config.layer_norm_eps = fields.number("layer_norm_eps", config.layer_norm_eps);
  config.activation = activation_named(fields, "hidden_act", "gelu");
  if (config.family != Family::electra) return;
  const std::int64_t size = fields.positive("embedding_size", 128);
  config.embedding_size = size == config.hidden_size ? 0 : size;
}

void read_distilbert(const ConfigFields& fields, TransformerConfig& config) {
  config.hidden_size = fields.positive("dim");
  config.num_hidden_layers = num_blocks(fields, "n_layers");
  config.num_attention_heads = fields.positive("n_heads");
  config.intermediate_size = fields.positive("hidden_dim");
  require_heads_that_divide(fields, "n_heads", config);
  config.vocab_size = fields.positive("vocab_size");
  read_positions(fields, config);
  config.activation = activation_named(fields, "activation", "gelu");
}

void read_modernbert(const ConfigFields& fields, TransformerConfig& config) {
  read_sizes(fields, config);
  require_heads_that_divide(fields, "num_attention_heads", config);
  config.vocab_size = fields.positive("vocab_size");
  config.max_position_embeddings = fields.positive("max_position_embeddings", 8192);
  config.padding_id = padding_id(fields, 50283, config);
  config.layer_norm_eps = fields.number("norm_eps", config.layer_norm_eps);
  config.norm_has_bias = fields.flag("norm_bias", false);
  config.has_qkv_bias = config.has_attention_output_bias = fields.flag("attention_bias", false);
  config.has_mlp_bias = fields.flag("mlp_bias", false);
  config.has_dense_bias = fields.flag("classifier_bias", false);
  config.pools_tokens = pools_tokens(fields);
  config.activation = activation_named(fields, "hidden_activation", "gelu");
  read_rotary_patterns(fields, 160'000, config);
}

void read_vit(const ConfigFields& fields, TransformerConfig& config) {
  read_sizes(fields, config);
  require_heads_that_divide(fields, "num_attention_heads", config);
  config.image_size = fields.positive("image_size", 224);
  config.patch_size = fields.positive("patch_size", config.patch_size);
  config.num_channels = fields.positive("num_channels", 3);
  config.has_qkv_bias = fields.flag("qkv_bias", true);
  config.layer_norm_eps = fields.number("layer_norm_eps", config.layer_norm_eps);
  config.activation =
      config.has_gate ? Activation::silu : activation_named(fields, "hidden_act", "gelu");  // SwiGLU uses silu
  if (config.image_size % config.patch_size != 0 || config.image_size > 8192)
    throw InvalidInput(fields.place("image_size"),
                       fmt::format("must be a multiple of patch_size ({}), at most 8192", config.patch_size),
                       std::to_string(config.image_size));
}

void read_gpt2(const ConfigFields& fields, TransformerConfig& config) {
  config.hidden_size = fields.positive("n_embd");
  config.num_hidden_layers = num_blocks(fields, "n_layer");
  config.num_attention_heads = fields.positive("n_head");
  require_heads_that_divide(fields, "n_head", config);
  config.intermediate_size = fields.positive("n_inner", 4 * config.hidden_size);
  config.vocab_size = fields.positive("vocab_size");
  config.max_position_embeddings = fields.positive("n_positions", 1024);
  config.padding_id = padding_id(fields, std::nullopt, config);
  config.layer_norm_eps = fields.number("layer_norm_epsilon", 1e-5);
  config.activation = activation_named(fields, "activation_function", "gelu_new");
  config.ties_embeddings = fields.flag("tie_word_embeddings", true);
}

void read_gpt_neox(const ConfigFields& fields, TransformerConfig& config) {
  read_sizes(fields, config);
  require_heads_that_divide(fields, "num_attention_heads", config);
  config.vocab_size = fields.positive("vocab_size");
  config.max_position_embeddings = fields.positive("max_position_embeddings", 2048);
  config.padding_id = padding_id(fields, std::nullopt, config);
  config.layer_norm_eps = fields.number("layer_norm_eps", config.layer_norm_eps);
  config.ties_embeddings = fields.flag("tie_word_embeddings", false);
  config.activation = activation_named(fields, "hidden_act", "gelu");
  config.has_parallel_residual = fields.flag("use_parallel_residual", true);
  config.has_qkv_bias = config.has_attention_output_bias = fields.flag("attention_bias", true);
  read_rotary_patterns(fields, 10'000, config);
}

void read_decoder(const ConfigFields& fields, TransformerConfig& config) {
  read_sizes(fields, config);
  read_heads(fields, config);
  config.vocab_size = fields.positive("vocab_size");
  const DecoderDefaults defaults = decoder_defaults(config.family);
  config.max_position_embeddings = fields.positive("max_position_embeddings", defaults.positions);
  config.padding_id = padding_id(fields, defaults.padding_id, config);
  config.layer_norm_eps = fields.number("rms_norm_eps", config.layer_norm_eps);
  config.ties_embeddings = fields.flag("tie_word_embeddings", config.ties_embeddings);
  config.activation = decoder_activation(fields, config);
  if (config.family != Family::qwen2 && config.family != Family::phi3)
    config.has_qkv_bias = config.has_attention_output_bias = fields.flag("attention_bias", false);
  config.has_mlp_bias = may_have_mlp_bias(config.family) && fields.flag("mlp_bias", false);
  if (config.norm_adds_one) config.embedding_factor = std::sqrt(static_cast<double>(config.hidden_size));
  if (config.family == Family::gemma2 || config.family == Family::gemma3_text) {
    config.attention_scale = 1 / std::sqrt(fields.number("query_pre_attn_scalar", 256));
    const bool has_caps = config.family == Family::gemma2;
    config.attention_soft_cap = number_or_none(fields, "attn_logit_softcapping", has_caps ? 50 : 0);
    config.logits_soft_cap = number_or_none(fields, "final_logit_softcapping", has_caps ? 30 : 0);
  }
  read_rotary_patterns(fields, defaults.theta, config);
}

void read_granite(const ConfigFields& fields, TransformerConfig& config) {
  read_decoder(fields, config);
  config.embedding_factor = fields.number("embedding_multiplier", 1);
  config.attention_scale = fields.number("attention_multiplier", 1);
  config.residual_factor = fields.number("residual_multiplier", 1);
  config.logits_factor = 1 / fields.number("logits_scaling", 1);
}

void read_starcoder2(const ConfigFields& fields, TransformerConfig& config) {
  read_decoder(fields, config);
  config.layer_norm_eps = fields.number("norm_epsilon", config.layer_norm_eps);
  config.activation = activation_named(fields, "hidden_act", "gelu_pytorch_tanh");
  config.has_qkv_bias = config.has_attention_output_bias = config.has_mlp_bias = fields.flag("use_bias", true);
}

}  // namespace frostpipe
