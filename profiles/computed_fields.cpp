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
    kDecoders = ModelTypes{"gpt2",  "llama", "mistral", "smollm3", "granite", "starcoder2",
                           "qwen2", "qwen3", "olmo2",   "olmo3",   "phi3",    "gpt_neox"} +
                kGemmas,
    kBerts{"bert", "roberta", "xlm-roberta", "camembert", "electra"},
    kEncoders = kBerts + ModelTypes{"distilbert", "modernbert"}, kPictures{"vit", "deit", "dinov2"},
    kNets{"resnet", "mobilenet_v1", "mobilenet_v2"}, kExperts{"mixtral", "qwen3_moe", "olmoe", "deepseek_v3"},
    kAll = kExperts + kEncoders + kDecoders + kPictures + kNets;

const ComputedField kComputedFields[] = {
    {{"resnet"}, "hidden_act", "\"relu\"", false},
    {kAll, "position_embedding_type", "\"absolute\"", true},
    {kAll, "is_encoder_decoder", "false", true},
    {kBerts, "is_decoder", "false", false},
    {kBerts + ModelTypes{"gpt2"}, "add_cross_attention", "false", true},
    {{"gpt2"}, "scale_attn_weights", "true", false},
    {{"gpt2"}, "scale_attn_by_inverse_layer_idx", "false", false},
    {{"starcoder2"}, "mlp_type", "\"default\"", true},
    {{"starcoder2"}, "norm_type", "\"layer_norm\"", true},
    {{"starcoder2"}, "scale_attn_weights", "true", false},
    {{"qwen3_moe"}, "decoder_sparse_step", "1", true},
    {{"qwen3_moe"}, "mlp_only_layers", "[]", true},
    {{"deepseek_v3"}, "moe_layer_freq", "1", true},
    {{"modernbert"}, "classifier_activation", "\"gelu\"", false},
    {kGemmas, "use_bidirectional_attention", "false", false},
    {kPictures + kNets, "num_channels", "3", false},
    {{"mobilenet_v2"}, "output_stride", "32", false},
    {kBerts + ModelTypes{"vit", "gpt2", "distilbert"}, "pruned_heads", "{}", true},
    {kAll, "per_layer_config", "{}", true},
    {kAll, "quantization_config", "null", false},
};

/// Another name of a field, which transformers accepts for a family and prefers.
struct OtherName {
  std::string_view model_type;
  const char *name, *field;
};

const OtherName kOtherNames[] = {
    {"gpt2", "hidden_size", "n_embd"},
    {"gpt2", "max_position_embeddings", "n_positions"},
    {"gpt2", "num_attention_heads", "n_head"},
    {"gpt2", "num_hidden_layers", "n_layer"},
    {"starcoder2", "layer_norm_epsilon", "norm_epsilon"},
};

/// Fields that change nothing in training here.
constexpr const char* kFieldsWithoutEffect[] = {
    // transformers' and others' notes about the file, its weights and its tokenizer
    "_name_or_path", "_commit_hash", "architectures", "auto_map", "custom_pipelines", "directionality", "dtype",
    "finetuning_task", "is_llama_config", "language", "max_sequence_length", "model_max_length", "model_name",
    "model_type", "n_ctx", "n_special", "name", "predict_special_tokens", "sbert_ce_default_activation_function",
    "sentence_transformers", "tie_weights_", "tokenizer_class", "torch_dtype", "transformers.js_config",
    "transformers_version", "trust_remote_code", "unsloth_fixed", "unsloth_version", "use_auth_token",
    "vocab_size_or_config_json_file", "xla_device",
    // special tokens, and labels, which are read elsewhere
    "bos_token_id", "cls_token_id", "decoder_start_token_id", "eos_token_id", "eos_token_ids", "mask_token_id",
    "pad_token_id", "sep_token_id", "unk_token_id", "_num_labels", "id2label", "label2id", "num_labels", "problem_type",
    // defaults of generation
    "bad_words_ids", "begin_suppress_tokens", "cache_implementation", "diversity_penalty", "do_sample",
    "early_stopping", "encoder_no_repeat_ngram_size", "exponential_decay_length_penalty", "forced_bos_token_id",
    "forced_eos_token_id", "length_penalty", "max_length", "max_new_tokens", "min_length", "no_repeat_ngram_size",
    "num_beam_groups", "num_beams", "num_return_sequences", "prefix", "remove_invalid_values", "repetition_penalty",
    "suppress_tokens", "task_specific_params", "temperature", "top_k", "top_p", "typical_p", "use_cache",
    // outputs of a call
    "out_features", "out_indices", "output_attentions", "output_hidden_states", "output_past", "output_router_logits",
    "output_scores", "return_dict", "return_dict_in_generate", "stage_names", "torchscript",
    // other orders of the same operations
    "_attn_implementation", "_attn_implementation_autoset", "_flash_attn_2_enabled", "attention_softmax_in_fp32",
    "attn_implementation", "chunk_size_feed_forward", "deterministic_flash_attn", "gradient_checkpointing",
    "pretraining_tp", "reference_compile", "reorder_and_upcast_attn", "repad_logits_with_grad",
    "scale_attention_softmax_in_fp32", "use_bfloat16",
    // dropouts, which --dropout sets
    "activation_dropout", "attention_dropout", "attention_probs_dropout_prob", "attn_pdrop", "classifier_dropout",
    "classifier_dropout_prob", "drop_path_rate", "dropout", "embd_pdrop", "embedding_dropout", "hidden_dropout",
    "hidden_dropout_prob", "mlp_dropout", "qa_dropout", "resid_pdrop", "residual_dropout", "seq_classif_dropout",
    "summary_first_dropout", "summary_last_dropout",
    // initial weights; Transformer families read initializer_range, and convolutional nets do not
    "initializer_cutoff_factor", "initializer_range", "layerscale_value", "sinusoidal_pos_embds",
    // parts and heads that are not computed
    "apply_layernorm", "decoder_bias", "encoder_stride", "is_decoder", "pooler_act", "pooler_fc_size",
    "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_output_size", "pooler_size_per_head", "pooler_type",
    "reshape_hidden_states", "semantic_loss_ignore_index", "sparse_pred_ignore_index", "sparse_prediction",
    "summary_activation", "summary_proj_to_labels", "summary_type", "summary_use_proj", "tie_word_embeddings",
    "use_mask_token",
    // experts, which are only counted
    "aux_loss_alpha", "clip_qkv", "ep_size", "n_group", "norm_topk_prob", "num_nextn_predict_layers", "qk_head_dim",
    "rope_interleave", "routed_scaling_factor", "router_aux_loss_coef", "router_jitter_noise", "scoring_func",
    "seq_aux", "topk_group", "topk_method",
    // read unless another field takes their place; Gemma 1 ignores hidden_activation, Gemma 2 and 3 hidden_act, and
    // ModernBERT layer_norm_eps
    "_sliding_window_pattern", "global_attn_every_n_layers", "global_rope_theta", "hidden_act", "hidden_activation",
    "layer_norm_eps", "local_attention", "local_rope_theta", "max_window_layers", "original_max_position_embeddings",
    "partial_rotary_factor", "rope_local_base_freq", "rope_scaling", "rope_theta", "rotary_emb_base", "rotary_pct",
    "sliding_window", "sliding_window_pattern", "use_sliding_window"};

/// Returns whether a field means the same as if it were missing.
bool says_nothing(const nlohmann::ordered_json& value) {
  return value.is_null() || value == false || value == "" || (value.is_structured() && value.empty());
}

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
                         fmt::format("must be {}: other values are not supported", field.value), value.dump());
  }
  for (const OtherName& other : kOtherNames) {
    const Json value = given(config, other.name), known = given(config, other.field);
    if (type == other.model_type && !value.is_null() && value != known)
      throw InvalidInput(fmt::format("{}: {}", file, other.name),
                         fmt::format("must equal {}, the field that is read ({})", other.field,
                                     known.is_null() ? "missing" : known.dump()),
                         value.dump());
  }
}

void require_known_fields(const nlohmann::ordered_json& config, const FieldNames& read, const std::string& file) {
  FieldNames known = read;
  known.insert(std::begin(kFieldsWithoutEffect), std::end(kFieldsWithoutEffect));
  const Json type = config.value("model_type", nlohmann::ordered_json());
  for (const ComputedField& field : kComputedFields)
    if (std::ranges::find(field.model_types, type) != field.model_types.end()) known.insert(field.name);
  for (const OtherName& other : kOtherNames)
    if (type == other.model_type) known.insert(other.name);
  require_known_parameters(config, known, file + ": ");
}

void require_known_parameters(const nlohmann::ordered_json& object, const FieldNames& known, const std::string& place) {
  for (const auto& [name, value] : object.items())
    if (!known.contains(name) && !says_nothing(value))
      throw InvalidInput(place + name,
                         "must not be given: it is not known here and may change what the model computes. If it "
                         "does not, remove it from the file",
                         value.dump());
}

}  // namespace frostpipe
