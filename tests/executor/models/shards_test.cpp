#include "executor/models/shards.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <numeric>
#include <vector>

#include "executor/communication/communicator.h"
#include "executor/device/device.h"
#include "tests/executor/ranks.h"
#include "tests/executor/small_model.h"

namespace frostpipe {
namespace {

/// 4 heads of 3, an MLP of 26: neither is a multiple of 3 or 6 tensor ranks.
std::vector<TransformerConfig> configs() {
  std::vector<TransformerConfig> configs;
  for (TransformerConfig config : test::small_configs()) {
    config.hidden_size = 12;
    config.num_attention_heads = 4;
    config.intermediate_size = 26;
    configs.push_back(config);
  }
  return configs;
}

std::int64_t values_of(const std::vector<ParameterSpec>& layer) {
  std::int64_t count = 0;
  for (const ParameterSpec& spec : layer) count += spec.count();
  return count;
}

/// The values of a layer, numbered.
at::Tensor numbered(const std::vector<ParameterSpec>& layer) { return at::arange(values_of(layer), at::kLong); }

/// The part of one of `t` tensor ranks, of a layer whose values are numbered.
at::Tensor held_by(const std::vector<ParameterSpec>& layer, int tensor, int t) {
  return taken(layer, numbered(layer), {}, {.slice = slice_of(tensor, t)});
}

/// Calls visit(the whole parameters of a layer) for all layers of all heads of all families.
template <class Visit>
void for_all_layers(Visit visit) {
  for (const TransformerConfig& config : configs())
    for (int layer = 0; layer < 8; ++layer) {
      SCOPED_TRACE(test::name_of(config) + ", layer " + std::to_string(layer));
      visit(config, layer, parameters_of(config, layer));
    }
}

/// Oracle: the shapes of Megatron's shards, by hand.
TEST(Shards, AttentionIsCutByHeadsAndTheMlpByColumnsAndRows) {
  for (const TransformerConfig& config : {configs()[0], configs()[2], configs()[3]}) {  // BERT, ViT and GPT-2
    const auto shapes = [&](int layer) {
      std::map<std::vector<std::int64_t>, int> shapes;
      for (const ParameterSpec& spec : cut(parameters_of(config, layer), slice_of(2, 4))) ++shapes[spec.shape];
      return shapes;
    };
    using Shapes = std::map<std::vector<std::int64_t>, int>;
    EXPECT_EQ(shapes(1), (Shapes{{{9, 12}, 1}, {{12, 3}, 1}, {{9}, 1}, {{12}, 3}})) << test::name_of(config);
    EXPECT_EQ(shapes(2), (Shapes{{{6, 12}, 1}, {{12, 6}, 1}, {{6}, 1}, {{12}, 3}})) << test::name_of(config);
  }
}

/// By hand, of 4 heads of 3 values that share 2 key heads: the second of two tensor ranks has queries 2 and 3, and key
/// and value 1. A single key head is on all of them.
TEST(Shards, KeyHeadsAreCutWithTheirQueriesAndASingleOneIsOnEveryRank) {
  TransformerConfig config = described(Family::llama);
  config.hidden_size = 12;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.intermediate_size = 26;
  const std::vector<ParameterSpec> layer = parameters_of(config, 1);
  ASSERT_EQ(layer[1].role, Role::key_value);
  EXPECT_TRUE(at::equal(taken({layer[1]}, numbered({layer[1]}), {}, {.slice = slice_of(1, 2)}),
                        at::cat({at::arange(3 * 12, 6 * 12), at::arange(9 * 12, 12 * 12)})));
  EXPECT_EQ(cut(layer[0], slice_of(1, 2)).shape, (std::vector<std::int64_t>{6, 12}));
  EXPECT_EQ(max_tensor_ranks(config), 2);
  config.num_key_value_heads = 1;
  EXPECT_EQ(cut(parameters_of(config, 1)[1], slice_of(1, 4)).shape, (std::vector<std::int64_t>{6, 12}));
  EXPECT_EQ(cut(parameters_of(config, 1)[0], slice_of(1, 4)).shape, (std::vector<std::int64_t>{3, 12}));
  EXPECT_EQ(max_tensor_ranks(config), 4);
}

/// Oracle: the shapes of Megatron's shards without its padding, by hand: of 40 tokens the second of three tensor ranks
/// has 13 to 25.
TEST(Shards, TheVocabularyIsCutByRowsButNoOtherTableOrHead) {
  for (const TransformerConfig& config : configs()) {
    for (const int layer : {0, 7})
      for (const ParameterSpec& spec : cut(parameters_of(config, layer), slice_of(1, 3))) {
        const bool is_shared =
            spec.role == Role::words || (spec.role == Role::classes && config.task == Task::causal_language_modeling);
        EXPECT_EQ(spec.share, is_shared ? ParameterSpec::Share::rows : ParameterSpec::Share::whole);
        EXPECT_TRUE(!is_shared || spec.shape == std::vector<std::int64_t>({13, 12})) << spec.names.front();
      }
  }
  const ParameterSpec table = parameters_of(configs().front(), 0).front();
  EXPECT_TRUE(at::equal(taken({table}, numbered({table}), {}, {.slice = slice_of(1, 3)}),
                        at::arange(13 * 12, 26 * 12, at::kLong)));
}

/// By hand, of hidden size 12, 12 positions and 2 types: BERT's embedding has these and a norm, a block's halves a bias
/// and a norm, a language model's head a norm.
TEST(Shards, AModelSaysWhatAllTensorRanksHold) {
  for (const TransformerConfig& config : configs()) {
    if (config.family != Family::bert && config.family != Family::gpt2 && config.family != Family::vit) continue;
    const Model model = model_of(config, "small");
    SCOPED_TRACE(test::name_of(config));
    EXPECT_EQ(model.layers[1].whole_parameter_count, 3 * 12);
    EXPECT_EQ(model.layers[2].whole_parameter_count, 3 * 12);
    const Layer& embedding = model.layers[0];
    const std::map<Family, std::int64_t> whole{
        {Family::bert, (12 + 2 + 2) * 12}, {Family::gpt2, 12 * 12}, {Family::vit, embedding.parameter_count}};
    EXPECT_EQ(embedding.whole_parameter_count, whole.at(config.family));
    const bool is_causal = config.task == Task::causal_language_modeling;
    EXPECT_EQ(model.layers[7].whole_parameter_count, is_causal ? 2 * 12 : model.layers[7].parameter_count);
  }
}

/// Query, key and value are cut separately. Oracle: rows of the stacked matrix, by hand: heads have 3 rows, so that
/// tensor rank 1 of 4 has rows 3 to 5 of each.
TEST(Shards, StackedMatricesAreCutEachByItself) {
  const ParameterSpec qkv = parameters_of(configs().front(), 1).front();
  const at::Tensor values = at::arange(qkv.count(), at::kLong);
  const at::Tensor rows = at::tensor({3, 4, 5, 15, 16, 17, 27, 28, 29}, at::kLong);
  EXPECT_TRUE(at::equal(taken({qkv}, values, {}, {.slice = slice_of(1, 4)}).view({9, 12}),
                        values.view({36, 12}).index_select(0, rows)));
}

/// Oracle: the numbers of a layer's values. Split values are on one rank, the others on all ranks.
TEST(Shards, EverySharedValueHasOneHolderAndTheOthersAll) {
  for_all_layers([](const TransformerConfig& config, int number, const std::vector<ParameterSpec>& layer) {
    for (const int t : {1, 2, 3, 4, 6}) {
      std::vector<int> holders(values_of(layer));
      for (int tensor = 0; tensor < t; ++tensor) {
        const at::Tensor held = held_by(layer, tensor, t);
        EXPECT_EQ(held.numel(), values_of(cut(parameters_of(config, number), slice_of(tensor, t))));
        for (std::int64_t i = 0; i < held.numel(); ++i) ++holders[held[i].item<std::int64_t>()];
      }
      std::size_t value = 0;
      for (const ParameterSpec& spec : layer)
        for (std::int64_t i = 0; i < spec.count(); ++i, ++value)
          ASSERT_EQ(holders[value], spec.share == ParameterSpec::Share::whole ? t : 1) << spec.names.front();
    }
  });
}

/// Oracle: the result of `taken` for the whole layer.
TEST(Shards, APartIsTheSameFromWhateverHoldsIt) {
  for_all_layers([](const TransformerConfig&, int, const std::vector<ParameterSpec>& layer) {
    for (const int t : {1, 2, 3})
      for (int tensor = 0; tensor < t; ++tensor)
        for (const bool with_whole : {false, true}) {
          const ShardOfLayer half{.slice = {2 * tensor + 1, 2 * tensor + 2, 2 * t}, .with_whole = with_whole};
          const at::Tensor direct = taken(layer, numbered(layer), {}, half);
          EXPECT_EQ(direct.numel(), count_of(layer, half));
          EXPECT_TRUE(at::equal(taken(layer, held_by(layer, tensor, t), slice_of(tensor, t), half), direct)) << t;
        }
  });
}

/// The number of tensor ranks changes: parts of their least common multiple go from the ranks that have them to those
/// that need them. Oracle: the receiver's part of the whole layer.
TEST(Shards, PartsOfOneNumberOfTensorRanksMakeThoseOfAnother) {
  for_all_layers([](const TransformerConfig&, int, const std::vector<ParameterSpec>& layer) {
    for (const int t : {1, 2, 3, 4, 6})
      for (const int other : {1, 2, 3, 4, 6}) {
        const int all = std::lcm(t, other);
        for (int taker = 0; taker < other; ++taker) {
          const TensorSlice wanted = slice_of(taker, other);
          const at::Tensor expected = held_by(layer, taker, other), made = at::full_like(expected, -1);
          for (int atom = taker * all / other; atom < (taker + 1) * all / other; ++atom) {
            const int giver = atom * t / all;
            const ShardOfLayer part{.slice = slice_of(atom, all), .with_whole = atom == taker * all / other};
            put(layer, made, wanted, taken(layer, held_by(layer, giver, t), slice_of(giver, t), part), part);
          }
          EXPECT_TRUE(at::equal(made, expected)) << t << " to " << other << ", tensor rank " << taker;
        }
      }
  });
}

/// Two stacked pieces of 5 rows, 7 columns, and 3 values that every rank has: no size is a multiple of 3 tensor ranks.
std::vector<ParameterSpec> uneven_layer() {
  return {{.names = {}, .shape = {10, 2}, .share = ParameterSpec::Share::rows, .stacked = 2},
          {.names = {}, .shape = {3, 7}, .share = ParameterSpec::Share::columns},
          {.names = {}, .shape = {3}}};
}

/// Oracle: the whole layer from which the parts were cut.
RANK_TEST(Shards, PartsOfThreeRanksAreTheWholeOnAnyRank, 4) {
  const std::unique_ptr<ComputeDevice> device = make_device("cpu", self.local_rank);
  const auto communicator = Communicator::connect(self, *device);
  const std::vector<ParameterSpec> specs = uneven_layer();
  const at::Tensor whole = at::arange(count_of(specs, ShardOfLayer{}), at::kDouble);
  const std::vector<LayerPart> parts{{2, slice_of(0, 3)}, {0, slice_of(1, 3)}, {3, slice_of(2, 3)}};
  at::Tensor own;
  for (const LayerPart& part : parts)
    if (part.rank == self.rank) own = taken(specs, whole, {}, {.slice = part.slice});
  for (int to = 0; to < 4; ++to) {  // rank 1 has no part
    const at::Tensor collected = collect({.whole = specs, .parts = parts, .to_rank = to, .tag = 0, .what = "test"}, own,
                                         at::kDouble, communicator->control_group());
    CHECK_RANK(collected.defined() == (self.rank == to), "on that rank alone");
    CHECK_RANK(!collected.defined() || at::equal(collected, whole), "the whole");
  }
}

}  // namespace
}  // namespace frostpipe
