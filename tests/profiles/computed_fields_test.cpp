// Oracle: transformers 5's configurations of the families, and how their models use each field.
#include "profiles/computed_fields.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "tests/support/scratch_folder.h"

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

TEST(ComputedFields, WhatChangesTheComputationIsRefusedByName) {
  const std::string rest = ": another one is not computed here, is ";
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
  expect_refused("modernbert", "classifier_pooling", "cls", "mean");
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
            "config.json: hidden_size: must be that of n_embd, which is read (16), is 32");
  EXPECT_EQ(refusal("gpt2", {{"max_position_embeddings", 2048}}),
            "config.json: max_position_embeddings: must be that of n_positions, which is read (missing), is 2048");
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

TEST(ComputedFields, WhatChangesNothingIsTaken) {
  EXPECT_EQ(refusal("gpt2", {{"use_cache", false}, {"reorder_and_upcast_attn", true}, {"summary_type", "mean"}}), "");
  EXPECT_EQ(refusal("vit", {{"pooler_act", "relu"}, {"encoder_stride", 2}}), "");
  EXPECT_EQ(refusal("bert", {{"chunk_size_feed_forward", 8}, {"classifier_dropout", 0.3}}), "");
}

}  // namespace
}  // namespace frostpipe
