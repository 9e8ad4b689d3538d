#include "profiles/model.h"

#include "plan/recompute.h"
#include "profiles/profile.h"
#include "profiles/transformer/families.h"
#include "profiles/transformer/parameters.h"
#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using examples::chain_model;
using examples::message_of;
using examples::with;
using testing::StartsWith;

/// Writes the model into a profile's file and reads it again.
Model written_and_read(const Model& model) {
  return profile_from_json(to_json(Profile{.model = model}), "p.json").model;
}

TEST(Model, FreezingCountsWholeBlocksAndTheEmbeddingGoesWithTheFirst) {
  const Model model = chain_model(3);  // embedding, 3 x (attention, mlp), head: layers 0..7
  EXPECT_EQ(num_blocks(model), 3);
  EXPECT_EQ(first_trainable_layer(model, 0), 0);
  EXPECT_EQ(first_trainable_layer(model, 1), 3);
  EXPECT_EQ(first_trainable_layer(model, 3), 7);
  const int blocks_before[] = {0, 0, 0, 1, 1, 2, 2, 3};
  for (int layer = 0; layer < 8; ++layer) EXPECT_EQ(frozen_blocks(model, layer), blocks_before[layer]) << layer;
}

TEST(Model, FrozenBlocksAndFirstTrainableLayerAreInverse) {
  const Model model = chain_model(12);
  for (int blocks = 0; blocks <= 12; ++blocks)
    EXPECT_EQ(frozen_blocks(model, first_trainable_layer(model, blocks)), blocks);
}

/// By hand: 10 rows of 4, and 3 more parameters. At most 7 rows have gradients after 7 tokens.
TEST(Model, RowsThatNoTokenLooksUpAreNotTouched) {
  Model model = chain_model(1);
  model.hidden_size = 4;
  model.layers.front().parameter_count = 43;
  EXPECT_EQ(touched_parameter_count(model, 0, 7), 43);  // without vocab_size it counts as no table
  model.vocab_size = 10;
  EXPECT_EQ(touched_parameter_count(model, 0, 7), 7 * 4 + 3);
  EXPECT_EQ(touched_parameter_count(model, 0, 11), 43);
  EXPECT_EQ(touched_parameter_count(model, 1, 7), model.layers[1].parameter_count);
  EXPECT_EQ(written_and_read(model), model);
  model.vocab_size = 11;
  EXPECT_THAT(message_of([&] { validate(model, "model.json"); }),
              StartsWith("model.json: vocab_size: must be from 0 to 10"));
}

TEST(Model, TheNumberOfWholeParametersIsOptional) {
  Model model = chain_model(2);
  EXPECT_EQ(to_json(Profile{.model = model}).find("whole_parameter_count"), std::string::npos);
  const std::string identity = fingerprint(model);
  model.layers[1].whole_parameter_count = model.layers[1].parameter_count;
  EXPECT_EQ(written_and_read(model), model);
  EXPECT_EQ(fingerprint(model), identity);
  for (const std::int64_t wrong : {std::int64_t{-1}, model.layers[1].parameter_count + 1}) {
    model.layers[1].whole_parameter_count = wrong;
    EXPECT_EQ(message_of([&] { validate(model, "m.json"); }),
              "m.json: layers[1].whole_parameter_count: must be from 0 to 400, the layer's parameter_count, is " +
                  std::to_string(wrong));
  }
}

/// By hand: of 80 ns, the 2 / 5 that every rank holds whole, and a third of the rest.
TEST(Model, TensorRanksUpdateWhatTheyHold) {
  Layer layer{.parameter_count = 100, .whole_parameter_count = 40};
  EXPECT_EQ(update_of_tensor_rank(layer, 80, 3), 32 + 16);
  EXPECT_EQ(update_of_tensor_rank(layer, 80, 1), 80);
  layer.whole_parameter_count = 100;
  EXPECT_EQ(update_of_tensor_rank(layer, 80, 3), 80);
  EXPECT_EQ(update_of_tensor_rank({}, 80, 4), 20);
}

TEST(Model, SurvivesItsFile) {
  for (const int blocks : {0, 1, 12}) {
    Model model = chain_model(blocks);
    model.name = "a \"quoted\" name, \xC3\xA9\n";
    EXPECT_EQ(written_and_read(model), model);
  }
}

TEST(Model, FingerprintIsOfTheStructureOnly) {
  const Model model = chain_model(2);
  Model renamed = model;
  renamed.name = "another";
  EXPECT_EQ(fingerprint(model), fingerprint(renamed));
  Model larger = model;
  larger.layers[1].parameter_count += 1;
  EXPECT_NE(fingerprint(model), fingerprint(larger));
  EXPECT_NE(fingerprint(model), fingerprint(chain_model(3)));
}

TEST(Model, OnlyChainsOfHalfBlocksAreAccepted) {
  const auto error_of = [](auto change) {
    Model model = chain_model(2);
    change(model);
    return message_of([&] { validate(model, "m.json"); });
  };
  EXPECT_EQ(error_of([](Model& m) { m.layers.resize(1); }),
            "m.json: layers: must hold at least an embedding and a head, is 1 layers");
  EXPECT_THAT(error_of([](Model& m) { m.layers.erase(m.layers.begin() + 2); }), StartsWith("m.json: layers: must be"));
  EXPECT_EQ(error_of([](Model& m) { m.layers[2].kind = LayerKind::attention; }),
            "m.json: layers[2].kind: must be mlp here, is attention");
  EXPECT_EQ(error_of([](Model& m) { m.layers[3].block = 2; }), "m.json: layers[3].block: must be 1 here, is 2");
  EXPECT_EQ(error_of([](Model& m) { m.layers[0].block = 0; }), "m.json: layers[0].block: must be none here, is 0");
  EXPECT_EQ(error_of([](Model& m) { m.edges[1] = {1, 3}; }), "m.json: edges[1]: must lead from 1 to 2, is 1 to 3");
  EXPECT_EQ(error_of([](Model& m) { m.edges.pop_back(); }),
            "m.json: edges: must be the 5 edges of a chain, is 4 edges");
}

/// By hand: one layer per block, so 3 blocks with embedding and head are 5 layers.
TEST(Model, ABlockWithAParallelResidualIsOneLayer) {
  TransformerConfig config = described(Family::gpt_neox);
  config.num_hidden_layers = 3;
  config.has_parallel_residual = true;
  const Model model = model_of(config, "neox");
  EXPECT_EQ(model.layers.size(), 5U);
  EXPECT_EQ(model.layers[2].name, "block.1");
  EXPECT_EQ(first_trainable_layer(model, 2), 3);
  EXPECT_EQ(written_and_read(model), model);
  config.has_parallel_residual = false;
  std::int64_t halves = 0;
  for (const Layer& layer : model_of(config, "neox").layers) halves += layer.block == 1 ? layer.parameter_count : 0;
  EXPECT_EQ(model.layers[2].parameter_count, halves);
  Model mixed = model;
  mixed.layers[2].kind = LayerKind::mlp;
  EXPECT_EQ(message_of([&] { validate(mixed, "m.json"); }), "m.json: layers[2].kind: must be block here, is mlp");
  EXPECT_EQ(recompute_segments(RecomputeMode::attention, model, {0, 5}, 0),
            (std::vector<RecomputeSegment>{
                {{0, 1}, false}, {{1, 2}, true}, {{2, 3}, true}, {{3, 4}, true}, {{4, 5}, false}}));
}

TEST(Model, AnUnknownKindOfLayerIsNamed) {
  const auto text = with(to_json(Profile{.model = chain_model(1)}), "\"mlp\"", "\"convolution\"");
  EXPECT_EQ(
      message_of([&] { profile_from_json(text, "p.json"); }),
      "p.json: model.layers[2].kind: must be embedding, attention, mlp, head, layer or block, is \"convolution\"");
}

}  // namespace
}  // namespace frostpipe
