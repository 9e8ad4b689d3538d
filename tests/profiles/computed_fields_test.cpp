// Oracle: transformers 5's configurations of the families, and how their models use each field.
#include "profiles/computed_fields.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <variant>

#include "base/error.h"
#include "profiles/transformer/read_config.h"
#include "tests/support/reference_data.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;

std::string refusal(const std::string& type, const Json& changes, ConfigUse use = ConfigUse::computing) {
  Json config = {{"model_type", type}};
  config.update(changes);
  try {
    require_computed_fields(config.dump(), "config.json", use);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(ComputedFields, FieldsThatChangeTheComputationAreRefusedByName) {
  const std::string rest = ": other values are not supported, is ";
  const auto expect_refused = [&](const char* type, const char* field, const Json& computed, const Json& other) {
    SCOPED_TRACE(std::string(type) + ", " + field);
    EXPECT_EQ(refusal(type, {{field, other}}),
              "config.json: " + std::string(field) + ": must be " + computed.dump() + rest + other.dump());
    EXPECT_EQ(refusal(type, {{field, computed}}), "");
    EXPECT_EQ(refusal(type, {{field, nullptr}}), "");
  };
  expect_refused("resnet", "hidden_act", "relu", "silu");
  expect_refused("bert", "position_embedding_type", "absolute", "relative_key_query");
  expect_refused("bert", "is_decoder", false, true);
  expect_refused("bert", "add_cross_attention", false, true);
  expect_refused("gpt2", "add_cross_attention", false, true);
  expect_refused("gpt2", "scale_attn_weights", true, false);
  expect_refused("gpt2", "scale_attn_by_inverse_layer_idx", false, true);
  expect_refused("vit", "num_channels", 3, 1);
  expect_refused("roberta", "is_decoder", false, true);
  expect_refused("modernbert", "classifier_activation", "gelu", "relu");
  expect_refused("llama", "position_embedding_type", "absolute", "relative_key");
  expect_refused("gemma3_text", "use_bidirectional_attention", false, true);
  for (const char* type : {"bert", "vit", "gpt2"})
    expect_refused(type, "pruned_heads", Json::object(), {{"1", {0, 2}}});
  for (const char* type : {"bert", "vit", "gpt2", "llama", "qwen3", "distilbert"}) {
    expect_refused(type, "per_layer_config", Json::object(), {{"0", {{"num_attention_heads", 1}}}});
    expect_refused(type, "quantization_config", nullptr, {{"quant_method", "fp8"}});
  }
}

// GPT-2's sizes have a second name each, which transformers prefers to the first.
TEST(ComputedFields, ASecondNameMustSayTheSame) {
  EXPECT_EQ(refusal("gpt2", {{"n_embd", 16}, {"hidden_size", 32}}),
            "config.json: hidden_size: must equal n_embd, the field that is read (16), is 32");
  EXPECT_EQ(refusal("gpt2", {{"max_position_embeddings", 2048}}),
            "config.json: max_position_embeddings: must equal n_positions, the field that is read (missing), is 2048");
  EXPECT_EQ(refusal("gpt2", {{"n_embd", 16}, {"hidden_size", 16}}), "");
  EXPECT_EQ(refusal("bert", {{"n_embd", 16}, {"hidden_size", 32}}), "");
}

TEST(ComputedFields, CountingMindsOnlyWhatChangesTheCount) {
  const Json unusual = {{"hidden_act", "relu"}, {"is_decoder", true}};
  EXPECT_EQ(refusal("bert", unusual, ConfigUse::counting), "");
  EXPECT_NE(refusal("bert", {{"position_embedding_type", "relative_key"}}, ConfigUse::counting), "");
  EXPECT_NE(refusal("gpt2", {{"add_cross_attention", true}}, ConfigUse::counting), "");
  EXPECT_NE(refusal("vit", {{"pruned_heads", {{"0", {1}}}}}, ConfigUse::counting), "");
}

/// A config.json of Llama, with other fields.
std::string llama_refusal(const Json& changes, ConfigUse use = ConfigUse::computing) {
  Json config = {{"model_type", "llama"},    {"hidden_size", 16},       {"num_hidden_layers", 2},
                 {"num_attention_heads", 2}, {"intermediate_size", 24}, {"vocab_size", 40}};
  config.update(changes);
  try {
    config_from_json(config.dump(), "config.json", use);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(KnownFields, AnUnknownFieldIsRefusedByItsName) {
  const std::string rule =
      ": must not be given: it is not known here and may change what the model computes. If it does not, remove it "
      "from the file, is ";
  EXPECT_EQ(llama_refusal({{"residual_multiplier", 0.22}}), "config.json: residual_multiplier" + rule + "0.22");
  EXPECT_EQ(llama_refusal({{"qk_layernorm", true}}, ConfigUse::counting), "config.json: qk_layernorm" + rule + "true");
  EXPECT_EQ(llama_refusal({{"rope_parameters", {{"rope_theta", 500.0}, {"mrope_section", {16, 24, 24}}}}}),
            "config.json: rope_parameters.mrope_section" + rule + "[16,24,24]");
  EXPECT_EQ(llama_refusal({{"rope_scaling", {{"type", "linear"}, {"factor", 2.0}, {"offset", 1}}}}),
            "config.json: rope_scaling.offset" + rule + "1");
}

TEST(KnownFields, AnUnknownFieldMaySayNothing) {
  for (const Json& nothing : {Json(), Json(false), Json(""), Json::array(), Json::object()})
    EXPECT_EQ(llama_refusal({{"qk_layernorm", nothing}}), "") << nothing.dump();
}

/// As published: SmolLM2's, an unsloth copy's, and all that transformers 4 wrote beside what is read.
TEST(KnownFields, NotesAndDefaultsOfGenerationAreTaken) {
  EXPECT_EQ(llama_refusal({{"is_llama_config", true},
                           {"rope_interleaved", false},
                           {"transformers.js_config", {{"a", 1}}},
                           {"unsloth_fixed", true},
                           {"pretraining_tp", 1},
                           {"torch_dtype", "bfloat16"},
                           {"attention_dropout", 0.1},
                           {"temperature", 0.6},
                           {"eos_token_id", {1, 2}}}),
            "");
}

/// Oracle: notes in published files: distilgpt2's, deepset/roberta-base-squad2's, those of transformers 2 and of cross
/// encoders.
TEST(KnownFields, NotesOfOldFilesAreTaken) {
  EXPECT_EQ(llama_refusal({{"_num_labels", 1},
                           {"name", "Roberta"},
                           {"language", "english"},
                           {"eos_token_ids", 0},
                           {"sbert_ce_default_activation_function", "torch.nn.modules.linear.Identity"},
                           {"sentence_transformers", {{"version", "4.1.0"}}},
                           {"model_name", "unsloth/llama"},
                           {"xla_device", true}}),
            "");
}

/// Returns the defaults of transformers 5 for a model type, with all fields.
Json defaults_of(const std::string& type) {
  for (const Json& config : test::reference_data("configs_reference.json").at("configs"))
    if (config.at("model_type") == type) return config;
  throw InvalidInput("model_type", "must be recorded", type);
}

/// Oracle: -1 says "none" in the first conversions of LLaMA (decapoda-research/llama-7b-hf).
TEST(KnownFields, ANegativePaddingIdIsNone) {
  for (const char* type : {"llama", "gpt_neox", "modernbert", "smollm3"}) {
    Json config = defaults_of(type), without = config;
    config["pad_token_id"] = -1;
    without["pad_token_id"] = nullptr;
    EXPECT_TRUE(config_from_json(config.dump(), type) == config_from_json(without.dump(), type)) << type;
  }
}

/// Oracle: each configuration of transformers 5 with all its fields and their defaults.
TEST(KnownFields, EveryFieldThatTransformersWritesIsKnown) {
  for (Json config : test::reference_data("configs_reference.json").at("configs")) {
    const std::string type = config["model_type"];
    EXPECT_NO_THROW(config_from_json(config.dump(), type, ConfigUse::counting));
    config["a_new_field"] = 2;
    EXPECT_THROW(config_from_json(config.dump(), type, ConfigUse::counting), InvalidInput) << type;
  }
}

/// Returns the description in a config.json with its head size, or the refusal of a size that is missing.
std::variant<TransformerConfig, std::string> description_or_refusal(const Json& config) {
  try {
    TransformerConfig description = config_from_json(config.dump(), "config.json", ConfigUse::counting);
    description.head_size = description.size_of_head();
    return description;
  } catch (const InvalidInput& error) {
    return error.what();
  }
}

/// Oracle: the defaults of each configuration of transformers 5, with the number of blocks and such sizes required.
TEST(KnownFields, AFieldThatIsMissingHasTheDefaultOfTransformers) {
  for (const Json& config : test::reference_data("configs_reference.json").at("configs")) {
    const auto expected = description_or_refusal(config);
    for (const auto& [field, value] : config.items()) {
      if (field == "model_type") continue;
      Json without = config;
      without.erase(field);
      const auto read = description_or_refusal(without);
      if (const auto* const refused = std::get_if<std::string>(&read))
        EXPECT_EQ(*refused, "config.json: " + field + ": must be given, is missing");
      else
        EXPECT_TRUE(read == expected) << config.at("model_type") << ": " << field;
    }
  }
}

/// Oracle: transformers computes without caps or query rank if these are None, and version 4 takes None for the number
/// of key heads as a key head for each head (version 5 refuses it).
TEST(KnownFields, AFieldThatIsNullSaysNone) {
  const auto with_null = [](const char* type, const char* field) {
    Json config = defaults_of(type);
    config[field] = nullptr;
    return config_from_json(config.dump(), "config.json", ConfigUse::counting);
  };
  EXPECT_EQ(with_null("gemma2", "attn_logit_softcapping").attention_soft_cap, 0);
  EXPECT_EQ(with_null("gemma2", "final_logit_softcapping").logits_soft_cap, 0);
  EXPECT_EQ(with_null("mistral", "num_key_value_heads").key_value_heads(), 32);
  EXPECT_EQ(with_null("deepseek_v3", "q_lora_rank").latent.query_rank, 0);
}

/// Oracle: the lists that transformers 5 writes for a config.json without any.
TEST(KnownFields, BlocksWithoutAListHaveTheKindsOfTransformers) {
  for (const char* type : {"gemma2", "gemma3_text", "olmo3", "smollm3", "modernbert"}) {
    const Json listed = defaults_of(type);
    Json config = listed;
    config.erase("layer_types");
    config.erase("no_rope_layers");
    EXPECT_LT(config.size(), listed.size()) << type;
    EXPECT_TRUE(config_from_json(config.dump(), type) == config_from_json(listed.dump(), type)) << type;
  }
}

TEST(KnownFields, StarCoder2MayNameTheKindsThatItHas) {
  Json config = defaults_of("starcoder2");
  config.update({{"attention_softmax_in_fp32", true},
                 {"scale_attention_softmax_in_fp32", true},
                 {"scale_attn_weights", true},
                 {"layer_norm_epsilon", 1e-5},
                 {"mlp_type", "default"},
                 {"norm_type", "layer_norm"},
                 {"residual_dropout", 0.1}});
  EXPECT_NO_THROW(config_from_json(config.dump(), "config.json"));
  for (const Json& other :
       {Json{{"mlp_type", "gated"}}, Json{{"norm_type", "rms_norm"}}, Json{{"layer_norm_epsilon", 1}}}) {
    Json changed = config;
    changed.update(other);
    EXPECT_THROW(config_from_json(changed.dump(), "config.json"), InvalidInput) << other.dump();
  }
}

/// Oracle: transformers 5's MobileNetV2ForImageClassification, which computes without these fields; it has no dilation.
TEST(KnownFields, FieldsThatDoNotChangeANetAreKnown) {
  nlohmann::ordered_json config = {
      {"model_type", "mobilenet_v2"},    {"initializer_range", 0.1}, {"semantic_loss_ignore_index", 0},
      {"classifier_dropout_prob", 0.8},  {"num_channels", 3},        {"output_stride", 32},
      {"transformers_version", "5.24.0"}};
  EXPECT_NO_THROW(require_known_fields(config, {}, "config.json"));
  config["dilation"] = 2;
  EXPECT_THROW(require_known_fields(config, {}, "config.json"), InvalidInput);
  EXPECT_NO_THROW(require_known_fields(config, {"dilation"}, "config.json")) << "its reader knows it";
}

/// Oracle: Qwen3MoeConfig of transformers 5, which writes another name than transformers 4.
TEST(KnownFields, BothNamesOfTheNumberOfExpertsAreRead) {
  Json config = test::reference_data("configs_reference.json").at("configs").at(0);
  for (const Json& one : test::reference_data("configs_reference.json").at("configs"))
    if (one.at("model_type") == "qwen3_moe") config = one;
  config["num_local_experts"] = 32;
  EXPECT_EQ(config_from_json(config.dump(), "config.json", ConfigUse::counting).experts.count, 32);
  config.erase("num_local_experts");
  config["num_experts"] = 64;
  EXPECT_EQ(config_from_json(config.dump(), "config.json", ConfigUse::counting).experts.count, 64);
}

/// Oracle: Qwen2Attention and its like in transformers 5 take head_dim where it is given.
TEST(KnownFields, AHeadSizeOfItsOwnIsReadForEveryDecoder) {
  for (const char* type : {"llama", "mistral", "qwen2", "olmo2", "phi3"})
    for (Json config : test::reference_data("configs_reference.json").at("configs"))
      if (config.at("model_type") == type) {
        config["head_dim"] = 48;
        EXPECT_EQ(config_from_json(config.dump(), "config.json").size_of_head(), 48) << type;
      }
}

TEST(ComputedFields, FieldsThatChangeNothingAreAccepted) {
  EXPECT_EQ(refusal("gpt2", {{"use_cache", false}, {"reorder_and_upcast_attn", true}, {"summary_type", "mean"}}), "");
  EXPECT_EQ(refusal("vit", {{"pooler_act", "relu"}, {"encoder_stride", 2}}), "");
  EXPECT_EQ(refusal("bert", {{"chunk_size_feed_forward", 8}, {"classifier_dropout", 0.3}}), "");
}

}  // namespace
}  // namespace frostpipe
