// Oracle: messages that name file, field, rule and value.
#include "profiles/config_fields.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "profiles/transformer/read_config.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;

/// Returns the refusal of a config.json with these fields, "" if it is taken.
std::string refusal(const Json& changes, const char* model_type = "llama") {
  Json config = {{"model_type", model_type}, {"hidden_size", 16},       {"num_hidden_layers", 2},
                 {"num_attention_heads", 2}, {"intermediate_size", 24}, {"vocab_size", 40}};
  config.update(changes);
  try {
    config_from_json(config.dump(), "config.json");
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

// Sizes are computed with in 32 bits too.
TEST(ConfigFields, AWholeNumberFitsInto32Bits) {
  const std::string rule = ": must be a whole number from 1 to 2147483647, is ";
  for (const Json& value : {Json(2147483648), Json(18446744073709551615u), Json(0), Json(-1), Json(1.5), Json("wide")})
    EXPECT_EQ(refusal({{"vocab_size", value}}), "config.json: vocab_size" + rule + value.dump());
  EXPECT_EQ(refusal({{"vocab_size", 2147483647}}), "");
  EXPECT_EQ(refusal({{"num_key_value_heads", 2}, {"use_sliding_window", true}, {"max_window_layers", -1}}, "qwen2"),
            "config.json: max_window_layers: must be a whole number from 0 to 2147483647, is -1");
  EXPECT_EQ(refusal({{"pad_token_id", 0}}), "");
}

TEST(ConfigFields, ModernbertPoolsOneTokenOrAll) {
  for (const Json& pooling : {Json("cls"), Json("mean"), Json(nullptr)})
    EXPECT_EQ(refusal({{"classifier_pooling", pooling}}, "modernbert"), "") << pooling;
  EXPECT_EQ(refusal({{"classifier_pooling", "max"}}, "modernbert"),
            "config.json: classifier_pooling: must be cls or mean, is max");
}

TEST(ConfigFields, ANumberThatIsNotWholeHasBoundsToo) {
  const Json yarn = {{"type", "yarn"}, {"factor", 2.0}, {"original_max_position_embeddings", 1e300}};
  EXPECT_EQ(refusal({{"rope_scaling", yarn}}),
            "config.json: rope_scaling.original_max_position_embeddings: must be from 1 to 2147483647, is 1e+300");
  for (const double ratio : {1e300, 1e-300})
    EXPECT_EQ(refusal({{"mlp_ratio", ratio}}, "dinov2"),
              fmt::format("config.json: mlp_ratio: must give an MLP of 1 to 2147483647 values, is {:g}", ratio));
}

// 0.3 of 8 values are 2 of them, 0.1 of them none.
TEST(ConfigFields, TheFieldThatGivesTheRotatedPartIsNamed) {
  const std::string rule = ": must be at most 1 and give an even part of a head (8 values), is 0.1";
  EXPECT_EQ(refusal({{"rotary_pct", 0.3}}, "gpt_neox"), "");
  EXPECT_EQ(refusal({{"rotary_pct", 0.1}}, "gpt_neox"), "config.json: rotary_pct" + rule);
  EXPECT_EQ(refusal({{"rope_scaling", {{"partial_rotary_factor", 0.1}}}}, "gpt_neox"),
            "config.json: rope_scaling.partial_rotary_factor" + rule);
  EXPECT_EQ(refusal({{"partial_rotary_factor", 0.1}}), "config.json: partial_rotary_factor" + rule);
}

// A wrong type is not the default.
TEST(ConfigFields, AFieldOfAnotherTypeIsRefused) {
  EXPECT_EQ(refusal({{"model_type", 7}}), "config.json: model_type: must be a text, is 7");
  EXPECT_EQ(refusal({{"hidden_act", {"relu"}}}), "config.json: hidden_act: must be a text, is [\"relu\"]");
  EXPECT_EQ(refusal({{"rope_scaling", "yarn"}}), "config.json: rope_scaling: must be a JSON object, is \"yarn\"");
  EXPECT_EQ(refusal({{"rope_scaling", {{"type", 3}}}}), "config.json: rope_scaling.type: must be a text, is 3");
  EXPECT_EQ(refusal({{"rope_parameters", 1e6}}), "config.json: rope_parameters: must be a JSON object, is 1000000.0");
  EXPECT_EQ(refusal({{"rope_parameters", {{"full_attention", false}}}}),
            "config.json: rope_parameters.full_attention: must be a JSON object, is false");
  EXPECT_EQ(refusal({{"layer_types", "full_attention"}}),
            "config.json: layer_types: must be a list, is \"full_attention\"");
  for (const char* field : {"hidden_act", "rope_scaling", "rope_parameters", "layer_types"})
    EXPECT_EQ(refusal({{field, nullptr}}), "") << field;
}

}  // namespace
}  // namespace frostpipe
