// Oracles: the published sizes of models, and operations counted by hand.
#include "profiles/estimates/estimated_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "base/error.h"
#include "profiles/estimates/estimate.h"
#include "profiles/estimates/known_models.h"
#include "profiles/estimates/layer_work.h"
#include "profiles/transformer/parameters.h"
#include "profiles/transformer/read_config.h"

namespace frostpipe {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

template <class Work>
std::string refusal_of(Work work) {
  try {
    work();
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "no error";
}

constexpr const char* kBertLarge =
    R"({"model_type": "bert", "architectures": ["BertForQuestionAnswering"], "hidden_size": 1024,
     "num_hidden_layers": 24, "num_attention_heads": 16,
     "intermediate_size": 4096,
  "vocab_size": 30522, "max_position_embeddings": 512, "type_vocab_size": 2, "id2label": {"0": "a", "1": "b"}})";
constexpr const char* kViTBase =
    R"({"model_type": "vit", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
     "intermediate_size": 3072,
  "image_size": 224, "patch_size": 16, "num_channels": 3})";
constexpr const char* kGpt2 =
    R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024, "vocab_size": 50257,
     "n_inner": null})";

std::int64_t parameters(const EstimatedModel& model) {
  std::int64_t sum = -tied_parameter_count(model.config);
  for (const Layer& layer : estimate(model, {}).profile.model.layers) sum += layer.parameter_count;
  return sum;
}

double flops_of(const EstimatedModel& model) { return forward_flops(model.config, model.tokens); }

// Published: the numbers of parameters that transformers counts in the weights of the Hub's models (gpt2, gpt2-medium,
// gpt2-large, gpt2-xl; Llama 2, 3, 3.1, 3.2 and 3.3; Qwen2.5 and Qwen3; Mistral-7B-v0.3, Mistral-Nemo-Base-2407,
// Mistral-Small-24B-Base-2501; gemma-2; gemma-3-1b-pt; Phi-3-mini-4k-instruct and phi-4; OLMo-2-1124; SmolLM2;
// pythia-1.4b and -6.9b, gpt-neox-20b; Mixtral-8x7B and -8x22B; OLMoE-1B-7B; DeepSeek-V3 without the part that predicts
// a second token, 671 billion) and of torchvision's vit_b_16 and vit_l_16. For the text encoders: transformers' base
// models without the parts that the task does not use, plus their heads. BERT has 109,482,240 and 335,141,888 with a
// pooler, which question answering does not use; RoBERTa 124,055,040 and 354,310,144 without one; ModernBERT
// 149,014,272. For OLMo 3, SmolLM3, Granite 3.1 and StarCoder2: what transformers counts in models of these sizes.
const std::map<std::string, std::int64_t> kPublished{
    {"gpt2", 124'439'808},
    {"gpt2-medium", 354'823'168},
    {"gpt2-large", 774'030'080},
    {"gpt2-xl", 1'557'611'200},
    {"bert-base", 109'482'240 + 2 * (768 + 1)},
    {"bert-large", 335'141'888 - 1024 * (1024 + 1) + 2 * (1024 + 1)},
    {"roberta-base", 124'055'040 + 768 * (768 + 1) + 2 * (768 + 1)},
    {"roberta-large", 354'310'144 + 1024 * (1024 + 1) + 2 * (1024 + 1)},
    {"modernbert-base", 149'014'272 + 768 * 768 + 768 + 2 * (768 + 1)},
    {"vit-b16", 86'567'656},
    {"vit-l16", 304'326'632},
    {"llama-2-7b", 6'738'415'616},
    {"llama-2-13b", 13'015'864'320},
    {"llama-2-70b", 68'976'648'192},
    {"llama-3-8b", 8'030'261'248},
    {"llama-3-70b", 70'553'706'496},
    {"llama-3.1-8b", 8'030'261'248},
    {"llama-3.1-70b", 70'553'706'496},
    {"llama-3.1-405b", 405'853'388'800},
    {"llama-3.2-1b", 1'235'814'400},
    {"llama-3.2-3b", 3'212'749'824},
    {"llama-3.3-70b", 70'553'706'496},
    {"qwen2.5-0.5b", 494'032'768},
    {"qwen2.5-1.5b", 1'543'714'304},
    {"qwen2.5-3b", 3'085'938'688},
    {"qwen2.5-7b", 7'615'616'512},
    {"qwen2.5-14b", 14'770'033'664},
    {"qwen2.5-32b", 32'763'876'352},
    {"qwen2.5-72b", 72'706'203'648},
    {"qwen3-0.6b", 596'049'920},
    {"qwen3-1.7b", 1'720'574'976},
    {"qwen3-4b", 4'022'468'096},
    {"qwen3-8b", 8'190'735'360},
    {"qwen3-14b", 14'768'307'200},
    {"qwen3-32b", 32'762'123'264},
    {"mistral-7b", 7'248'023'552},
    {"mistral-nemo-12b", 12'247'782'400},
    {"mistral-small-24b", 23'572'403'200},
    {"gemma-2-2b", 2'614'341'888},
    {"gemma-2-9b", 9'241'705'984},
    {"gemma-2-27b", 27'227'128'320},
    {"gemma-3-1b", 999'885'952},
    {"phi-3-mini", 3'821'079'552},
    {"phi-4", 14'659'507'200},
    {"olmo-2-7b", 7'298'617'344},
    {"olmo-2-13b", 13'716'198'400},
    {"olmo-3-7b", 7'298'011'136},
    {"smollm3-3b", 3'075'098'624},
    {"granite-3.1-2b", 2'533'525'504},
    {"granite-3.1-8b", 8'170'835'968},
    {"starcoder2-3b", 3'030'371'328},
    {"starcoder2-7b", 7'173'923'840},
    {"smollm2-135m", 134'515'008},
    {"smollm2-360m", 361'821'120},
    {"smollm2-1.7b", 1'711'376'384},
    {"pythia-1.4b", 1'414'647'808},
    {"pythia-6.9b", 6'857'302'016},
    {"gpt-neox-20b", 20'554'567'680},
    {"mixtral-8x7b", 46'702'792'704},
    {"mixtral-8x22b", 140'620'634'112},
    {"qwen3-30b-a3b", 30'532'122'624},
    {"qwen3-235b-a22b", 235'093'634'560},
    {"olmoe-1b-7b", 6'919'161'856},
    {"deepseek-v3", 671'026'419'200},
};

TEST(KnownModels, AreListedShort) {
  EXPECT_THAT(known_model_names(),
              AllOf(StartsWith("gpt2, -medium, -large, -xl, bert-base, -large, roberta-base"),
                    HasSubstr("llama-3.1-8b, -70b, -405b, llama-3.2-1b"), EndsWith("deepseek-v3")));
}

TEST(KnownModels, HaveTheirPublishedParameters) {
  for (const KnownModel& known : known_models()) {
    ASSERT_TRUE(kPublished.contains(known.name)) << known.name;
    EXPECT_EQ(parameters(find_model(known.name, 0)), kPublished.at(known.name)) << known.name;
  }
}

// Counted by hand: 2 FLOP per token and parameter of the matrices, 4 per pair of query and key and value of a query.
TEST(KnownModels, DoAsMuchAsIsCountedByHand) {
  const double gpt2 = 12 * (2.0 * 1024 * (4 * 768 * 768 + 2 * 768 * 3072) + 4.0 * (1024 * 1025 / 2) * 768) +
                      2.0 * 1024 * 768 * 50257 + 2.0 * 1024 * 768;
  EXPECT_EQ(flops_of(find_model("gpt2", 0)), gpt2);
  // 32 query heads of 128 values share 8 heads of keys and values; the MLP has three matrices.
  const double llama = 32 * (2.0 * 8192 * (4096 * (4096 + 2 * 1024) + 4096 * 4096 + 3 * 4096 * 14336) +
                             4.0 * (8192.0 * 8193 / 2) * 4096) +
                       2.0 * 8192 * 4096 * 128256 + 2.0 * 8192 * 4096;
  EXPECT_EQ(flops_of(find_model("llama-3-8b", 0)), llama);
  // Heads have 256 values, 4 for queries and 1 for keys. 22 of 26 blocks see 512 tokens, fewer at the start.
  const double gemma = 26 * 2.0 * 4096 * (1152 * (1024 + 2 * 256) + 1024 * 1152 + 3 * 1152 * 6912) +
                       4.0 * 1024 * (4 * (4096.0 * 4097 / 2) + 22 * (512.0 * 513 / 2 + 512.0 * (4096 - 512))) +
                       2.0 * 4096 * 1152 * 262144 + 2.0 * 4096 * 1152;
  EXPECT_EQ(flops_of(find_model("gemma-3-1b", 4096)), gemma);
  // 14 of 22 blocks see 64 tokens on each side, fewer at the ends. The embedding has a norm, the head reads one token.
  const double modernbert = 22 * 2.0 * 8192 * (4 * 768 * 768 + 3 * 768 * 1152) +
                            4.0 * 768 * (8 * 8192.0 * 8192 + 14 * (8192.0 * 129 - 64 * 65)) + 20.0 * 8192 * 768 +
                            2.0 * (768 * 768 + 2 * 768);
  EXPECT_EQ(flops_of(find_model("modernbert-base", 0)), modernbert);
}

/// The 6N rule: in training 6 FLOP per token and parameter of the matrices, which are all parameters but the table of
/// 128256 x 4096 and 65 norms of 4096; a forward has a third. In the attention of each of 32 layers a query meets
/// (8192 + 1) / 2 keys on average, with 4 x hidden FLOP for each. The embedding's sums have 2 per value.
TEST(KnownModels, DoSixFlopForEachParameterAndTokenInTraining) {
  const double matrices = 8'030'261'248.0 - 128256.0 * 4096 - 65 * 4096, attention = 2.0 * 4096 * 8193 * 32,
               per_token = 2 * matrices + attention + 2 * 4096;
  const Profile profile = estimate(find_model("llama-3-8b", 8192), {}).profile;
  EXPECT_DOUBLE_EQ(profile.forward_flops.value(), 8192 * per_token);
  EXPECT_NEAR(3 * *profile.forward_flops / 8192 / (6 * matrices), 1.143, 0.001) << "attention is a seventh";
}

// Counted by hand as above. A token goes through 2 of 8 experts, and in DeepSeek-V3 through 8 of 256 and the shared
// one. Heads of DeepSeek-V3 have 128 + 64 values of queries and keys and 128 of values, from latents of 1536 and 512
// (plus 64 for the positions of all heads' keys).
TEST(KnownModels, GoThroughTheExpertsThatAreChosen) {
  const double pairs = 4096.0 * 4097 / 2;
  const double mixtral = 32 * (2.0 * 4096 * (4096 * (4096 + 2 * 1024) + 4096 * 4096 + 8 * 4096) +
                               2.0 * 4096 * 2 * (3 * 4096.0 * 14336) + 4 * pairs * 4096) +
                         2.0 * 4096 * 4096 * 32000 + 2.0 * 4096 * 4096;
  EXPECT_EQ(flops_of(find_model("mixtral-8x7b", 4096)), mixtral);
  const double attention = 1536.0 * 7168 + 128 * 192 * 1536.0 + 576.0 * 7168 + 128 * 256 * 512.0 + 7168 * 16384.0;
  const double active =
      61 * attention + 3 * (3 * 7168.0 * 18432) + 58 * (256 * 7168 + 9 * (3 * 7168.0 * 2048)) + 7168.0 * 129280;
  EXPECT_NEAR(active + 7168.0 * 129280, 37e9, 0.6e9)
      << "DeepSeek-V3 Technical Report, 2024: 37 billion, with the table";
  const double deepseek = 2.0 * 4096 * active + 61 * 2 * pairs * 128 * (192 + 128) + 2.0 * 4096 * 7168;
  EXPECT_EQ(flops_of(find_model("deepseek-v3", 4096)), deepseek);
}

TEST(ModelFromConfig, RefusesExpertsThatNoTokenCanHave) {
  EXPECT_THAT(refusal_of([] {
                model_from_config(R"({"model_type": "mixtral", "hidden_size": 64, "num_hidden_layers": 2,
     "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 64, "num_local_experts": 4,
     "num_experts_per_tok": 5, "vocab_size": 100})",
                                  "config.json", 0);
              }),
              HasSubstr("config.json: num_experts_per_tok: must be at most num_local_experts (4), is 5"));
  EXPECT_THAT(
      refusal_of([] { model_from_config(R"({"model_type": "qwen3_moe", "mlp_only_layers": [1]})", "config.json", 0); }),
      HasSubstr("config.json: mlp_only_layers: must be []"));
}

/// Oracle: the error message.
TEST(ConfigFromJson, SaysThatExpertsAreOnlyEstimated) {
  EXPECT_THAT(refusal_of([] { config_from_json(R"({"model_type": "mixtral"})", "config.json"); }),
              HasSubstr("; a mixtral can only be estimated (profile --like), is \"mixtral\""));
}

TEST(KnownModels, TakeAsManyTokensAsAreAskedFor) {
  EXPECT_EQ(find_model("llama-3.2-1b", 0).tokens, 8192) << "of 131,072";
  EXPECT_EQ(find_model("llama-3.2-1b", 20000).tokens, 20000);
  EXPECT_EQ(find_model("bert-large", 0).tokens, 384);
  EXPECT_EQ(find_model("bert-large", 512).tokens, 512);
}

TEST(KnownModels, HaveNamesInAnyCase) {
  EXPECT_EQ(find_model("Llama-3-8B", 0).name, "llama-3-8b");
  EXPECT_THAT(refusal_of([] { find_model("Llama-3-9B", 0); }), HasSubstr("Llama-3-9B: must be one of gpt2, "));
}

// Profiles of these sizes would take gigabytes, and products would exceed 64 bits.
TEST(ModelFromConfig, RefusesSizesThatNoModelHas) {
  const auto refusal = [](std::string from, const std::string& field, const std::string& value, int tokens = 0) {
    const auto begin = from.find("\"" + field + "\": ");
    from.replace(begin, from.find_first_of(",}", begin) - begin, "\"" + field + "\": " + value);
    return refusal_of([&] { model_from_config(from, "config.json", tokens); });
  };
  EXPECT_EQ(refusal(kBertLarge, "num_hidden_layers", "2147483647"),
            "config.json: num_hidden_layers: must be <= 4096, is 2147483647");
  EXPECT_THAT(refusal(kBertLarge, "hidden_size", "2097152"),
              HasSubstr("the hidden size must be at most 1.04858e+06, is 2.09715e+06"));
  EXPECT_THAT(refusal(kBertLarge, "max_position_embeddings", "1048576", 1048576), HasSubstr("heads x tokens^2"));
  EXPECT_THAT(refusal(kViTBase, "image_size", "32768"), HasSubstr("at most 8192"));
  EXPECT_THAT(refusal(kGpt2, "vocab_size", "100000000"), HasSubstr("the embeddings' rows must be at most 6.71089e+07"));
}

TEST(ModelFromConfig, GivesTheKnownModels) {
  const std::string labels = R"(, "num_labels": 1000})", vit = kViTBase;
  for (const auto& [config, tokens, known] :
       {std::tuple{vit.substr(0, vit.size() - 1) + labels, 0, find_model("vit-b16", 0)},
        std::tuple{std::string(kBertLarge), 384, find_model("bert-large", 0)},
        std::tuple{std::string(kGpt2), 0, find_model("gpt2", 0)}}) {
    const EstimatedModel model = model_from_config(config, "config.json", tokens);
    EXPECT_EQ(parameters(model), parameters(known));
    EXPECT_EQ(flops_of(model), flops_of(known));
    EXPECT_EQ(model.tokens, known.tokens);
  }
}

/// Oracle: the model that is trained ties these.
TEST(ModelFromConfig, Gpt2SharesItsEmbeddingWithItsHead) {
  const Model model = estimate(model_from_config(kGpt2, "config.json", 0), {}).profile.model;
  EXPECT_EQ(model.tied_parameter_count, 50257 * 768);
  EXPECT_EQ(model.vocab_size, 50257);
}

/// Oracle: transformers' ViTForImageClassification.
TEST(ModelFromConfig, CountsTheLabelsThatHaveNoNames) {
  const std::string vit = kViTBase;
  const auto with = [&](const char* field) {
    return num_outputs(model_from_config(vit.substr(0, vit.size() - 1) + ", " + field + "}", "config.json", 0).config);
  };
  EXPECT_EQ(with(R"("num_labels": 7)"), 7);
  EXPECT_EQ(with(R"("num_labels": 7, "id2label": {"0": "a", "1": "b"})"), 2) << "as transformers";
  EXPECT_EQ(with(R"("num_labels": null)"), 2) << "as transformers";
}

/// Oracle: by hand, 3 x 768 biases in each of 12 blocks.
TEST(ModelFromConfig, CountsNoBiasesThatAPictureModelLacks) {
  const std::string vit = kViTBase;
  const std::string without = vit.substr(0, vit.size() - 1) + R"(, "qkv_bias": false})";
  EXPECT_EQ(
      parameters(model_from_config(vit, "config.json", 0)) - parameters(model_from_config(without, "config.json", 0)),
      12 * 3 * 768);
}

TEST(ModelFromConfig, RefusesWhatIsNotCounted) {
  const std::string gpt2 = kGpt2;
  EXPECT_THAT(refusal_of([&] {
                model_from_config(gpt2.substr(0, gpt2.size() - 1) + R"(, "add_cross_attention": true})", "config.json",
                                  0);
              }),
              HasSubstr("config.json: add_cross_attention: must be false: other values are not supported, is true"));
}

TEST(ModelFromConfig, NamesTheFieldThatIsWrong) {
  EXPECT_THAT(refusal_of([] { model_from_config(R"({"model_type": "mamba"})", "config.json", 0); }),
              HasSubstr("config.json: model_type: must be one of bert, vit, gpt2"));
  EXPECT_THAT(refusal_of([] { model_from_config(R"({"model_type": "bert", "hidden_size": 0})", "config.json", 0); }),
              HasSubstr("config.json: hidden_size: must be a whole number from 1 to 2147483647"));
  EXPECT_THAT(refusal_of([] { model_from_config(R"({"model_type": "gpt2"})", "config.json", 0); }),
              HasSubstr("n_embd"));
  EXPECT_THAT(refusal_of([] { model_from_config(kGpt2, "config.json", 2048); }), HasSubstr("must be at most 1024"));
  EXPECT_THAT(refusal_of([] { model_from_config("{", "config.json", 0); }), HasSubstr("is not valid JSON"));
}

}  // namespace
}  // namespace frostpipe
