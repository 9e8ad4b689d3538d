// Oracle: the defaults of each configuration of transformers 5, and what it makes of other fields.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/error.h"
#include "profiles/transformer/read_config.h"
#include "tests/support/reference_data.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;

/// Returns the defaults of transformers 5 for a model type, with all fields.
Json recorded_fields(const std::string& type) {
  for (const Json& config : test::reference_data("configs_reference.json").at("configs"))
    if (config.at("model_type") == type) return config;
  throw InvalidInput("model_type", "must be recorded", type);
}

/// Phi-4-mini's: the kind is what has no support, and its parameters are not to be removed.
TEST(RotaryFields, AnUnsupportedKindOfPositionsIsNamedBeforeItsParameters) {
  const Json longrope = {{"type", "longrope"}, {"long_factor", {1.0, 1.1}}, {"short_factor", {1.0, 1.0}}};
  Json config = recorded_fields("llama");
  config.erase("rope_parameters");
  config["rope_scaling"] = longrope;
  try {
    config_from_json(config.dump(), "config.json");
    FAIL();
  } catch (const InvalidInput& error) {
    EXPECT_STREQ(error.what(),
                 "config.json: rope_scaling.rope_type: must be default, linear, dynamic, llama3 or yarn: others are "
                 "not supported, is longrope");
  }
}

/// Oracle: Qwen2Config and Qwen3Config of transformers 5 set sliding_window to None then, whatever layer_types say.
TEST(RotaryFields, QwenHasAWindowOnlyWhereItUsesOne) {
  for (const char* type : {"qwen2", "qwen3"}) {
    Json config = recorded_fields(type);
    for (Json& kind : config.at("layer_types")) kind = "sliding_attention";
    config["sliding_window"] = 64;
    EXPECT_EQ(config_from_json(config.dump(), type).pattern_of(0).window, 0) << type;
    config["use_sliding_window"] = true;
    EXPECT_EQ(config_from_json(config.dump(), type).pattern_of(0).window, 64) << type;
  }
}

/// Oracle: the YaRN of Olmo-3-7B, which is that of blocks without a window, in the three forms of transformers'
/// versions.
TEST(RotaryFields, ScaledPositionsOfOlmo3AreThoseOfItsBlocksWithoutAWindow) {
  const Json yarn = {{"rope_type", "yarn"}, {"factor", 8.0}, {"original_max_position_embeddings", 8192}};
  const auto with = [](const Json& value, const Json& more) {
    Json joined = value;
    joined.update(more);
    return joined;
  };
  Json config = recorded_fields("olmo3");
  config.erase("rope_parameters");
  const Json old = with(config, {{"rope_scaling", yarn}, {"rope_theta", 500'000}}),
             flat = with(config, {{"rope_parameters", with(yarn, {{"rope_theta", 500'000}})}}),
             by_kind = with(config, {{"rope_parameters",
                                      {{"full_attention", with(yarn, {{"rope_theta", 500'000}})},
                                       {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 500'000}}}}}});
  const TransformerConfig expected = config_from_json(by_kind.dump(), "by kind");
  EXPECT_EQ(expected.rotaries.at(0).scaling.kind, RotaryScaling::Kind::yarn);
  EXPECT_EQ(expected.rotaries.at(1).scaling.kind, RotaryScaling::Kind::none);
  for (const Json& form : {old, flat}) EXPECT_TRUE(config_from_json(form.dump(), "form") == expected) << form.dump();
}

/// Oracle: rope_parameters of Gemma3TextConfig and ModernBertConfig in transformers 5.23 for the same fields.
TEST(RotaryFields, ABaseOfPositionsThatIsMissingIsThatOfItsKindOfBlocks) {
  const auto bases = [](const char* type, const Json& given) {
    Json config = recorded_fields(type);
    config.erase("rope_parameters");
    config.update(given);
    const TransformerConfig read = config_from_json(config.dump(), "config.json");
    return std::pair(read.rotaries.at(0).theta, read.rotaries.at(1).theta);
  };
  const Json one_kind = {{"rope_parameters", {{"full_attention", {{"rope_theta", 777.0}}}}}},
             empty = {{"rope_parameters", Json::object()}},
             old = {{"global_rope_theta", 111.0}, {"local_rope_theta", 222.0}};
  EXPECT_EQ(bases("gemma3_text", one_kind), std::pair(777.0, 10'000.0));
  EXPECT_EQ(bases("modernbert", one_kind), std::pair(777.0, 10'000.0));
  EXPECT_EQ(bases("modernbert", empty), std::pair(160'000.0, 10'000.0));
  Json both = {{"rope_parameters", {{"full_attention", {{"rope_type", "default"}}}}}};
  both.update(old);
  EXPECT_EQ(bases("modernbert", both), std::pair(111.0, 222.0));
  for (const char* type : {"gemma3_text", "modernbert"})
    EXPECT_THROW(bases(type, {{"rope_parameters", {{"rope_theta", 777.0}}}}), InvalidInput);
}

/// Oracle: ModernBertConfig in transformers 5.23 updates both kinds by rope_scaling, Gemma3TextConfig the full one.
TEST(RotaryFields, ScaledPositionsOfModernBertAreThoseOfAllBlocks) {
  const auto factors = [](const char* type) {
    Json config = recorded_fields(type);
    config.erase("rope_parameters");
    config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 2.0}};
    const TransformerConfig read = config_from_json(config.dump(), "config.json");
    return std::pair(read.rotaries.at(0).scaling.factor, read.rotaries.at(1).scaling.factor);
  };
  EXPECT_EQ(factors("modernbert"), std::pair(2.0, 2.0));
  EXPECT_EQ(factors("gemma3_text"), std::pair(2.0, 1.0));
}

}  // namespace
}  // namespace frostpipe
