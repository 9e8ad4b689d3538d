#include "profiles/transformer/read_config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;

// Oracle: transformers' loss of its classifiers for one label. Other models have no labels, though transformers 2 to 4
// wrote LABEL_0 into their files (distilgpt2).
TEST(ReadConfig, OneLabelIsANumberOnlyForAClassifier) {
  const auto type_of = [](const Json& config, int num_labels) {
    return problem_type_from_json(config.dump(), "config.json", num_labels);
  };
  for (const char* name : {"BertForSequenceClassification", "ViTForImageClassification"}) {
    const Json classifier = {{"architectures", {name}}};
    EXPECT_EQ(type_of(classifier, 1), ProblemType::regression);
    EXPECT_EQ(type_of(classifier, 2), ProblemType::single_label);
  }
  for (const char* name : {"GPT2LMHeadModel", "BertModel", "BertForTokenClassification"})
    EXPECT_EQ(type_of({{"architectures", {name}}}, 1), ProblemType::single_label) << name;
  EXPECT_EQ(type_of(Json::object(), 1), ProblemType::single_label);
  EXPECT_EQ(type_of({{"problem_type", "regression"}}, 1), ProblemType::regression);
}

// Oracle: GemmaConfig of transformers 5.23, whose MLP takes hidden_act, and Gemma2Config, whose MLP does not.
TEST(ReadConfig, Gemma1HasTheActivationInHiddenAct) {
  const auto activation = [](const char* type, const Json& given) {
    Json config = {{"model_type", type},       {"hidden_size", 16},        {"num_hidden_layers", 1},
                   {"num_attention_heads", 4}, {"num_key_value_heads", 4}, {"head_dim", 4},
                   {"intermediate_size", 8},   {"vocab_size", 40}};
    config.update(given);
    return config_from_json(config.dump(), "config.json").activation;
  };
  EXPECT_EQ(activation("gemma", Json::object()), Activation::gelu_tanh);
  EXPECT_EQ(activation("gemma", {{"hidden_act", "gelu"}, {"hidden_activation", nullptr}}), Activation::gelu_tanh);
  EXPECT_EQ(activation("gemma", {{"hidden_act", "gelu_pytorch_tanh"}, {"hidden_activation", "gelu"}}),
            Activation::gelu_tanh);
  EXPECT_EQ(activation("gemma", {{"hidden_act", "silu"}}), Activation::silu);
  EXPECT_EQ(activation("gemma2", {{"hidden_act", "silu"}}), Activation::gelu_tanh);
}

TEST(ReadConfig, NamesOfLabelsMayBeNumbers) {
  const auto names = [](const Json& id2label) {
    return label_names_from_json(Json{{"id2label", id2label}}.dump(), "config.json");
  };
  using Strings = std::vector<std::string>;
  EXPECT_EQ(names({{"0", 0}, {"1", 1}}), (Strings{"0", "1"}));
  EXPECT_EQ(names({{"0", "no"}, {"1", true}}), (Strings{"no", "true"}));
  for (const Json& bad : {Json(), Json{"a"}}) EXPECT_THROW(names({{"0", bad}}), InvalidInput);
  EXPECT_THROW(names({{"1", "a"}}), InvalidInput);
}

}  // namespace
}  // namespace frostpipe
