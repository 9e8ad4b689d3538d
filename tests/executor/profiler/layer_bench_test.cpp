#include "executor/profiler/layer_bench.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <vector>

#include "tests/executor/random_weights.h"
#include "tests/executor/small_model.h"

namespace frostpipe {
namespace {

using Lengths = std::vector<std::int64_t>;

/// Worked out by hand: the quarters' middles of {1, 1, 2, 2, 4, 4, 9, 9} are 1, 2, 4, 9, 16 tokens; four samples of 8
/// tokens have 32. Where the two longest are cut at 10, the others have the remaining 12.
TEST(MadeUpLengths, FollowTheDataAndHaveTheMean) {
  const std::vector<int> data{1, 1, 2, 2, 4, 4, 9, 9};
  EXPECT_EQ(made_up_lengths(4, 4, data, 512), (Lengths{1, 2, 4, 9}));
  EXPECT_EQ(made_up_lengths(4, 8, data, 512), (Lengths{2, 4, 8, 18}));
  EXPECT_EQ(made_up_lengths(4, 8, data, 10), (Lengths{4, 8, 10, 10}));
  EXPECT_EQ(made_up_lengths(3, 5, {}, 512), (Lengths{5, 5, 5}));
}

/// Float32 values a token, by hand: see HoldWhatTheMeterCountsAndNothingAfterwards. 2 samples of 4 tokens.
TEST(LayerBench, MeasuresABackwardInTwoPieces) {
  const TransformerConfig config = test::small_config(Family::gpt2, Task::causal_language_modeling);
  const Model model = model_of(config, "small");
  const LayerTypes types = layer_types_of(DType::kFloat32);
  std::map<int, LayerState> layers;
  for (int layer = 0; layer < static_cast<int>(model.layers.size()); ++layer) {
    LayerState& state =
        layers.emplace(layer, make_layer_state(parameters_of(config, layer), types, at::kCPU, true, 0)).first->second;
    test::randomise_layer(config, layer, 5, state);
    round_weights(state);
  }
  const std::unique_ptr<ComputeDevice> device = make_device("cpu", 0);
  LayerBench bench(config, model, layers, *device, types, {});
  SamplesByClass samples;
  for (int pass = 0; pass < 2; ++pass) bench.measure(2, 4, samples);
  const Bytes value = 4 * 2 * 4, h = 16, f = 24;
  for (auto& [layer_class, kept] : samples) {
    const LayerCost cost = cost_from(kept);
    ASSERT_TRUE(cost.split_backward);
    EXPECT_EQ(kept.input.count, 2);
    EXPECT_EQ(kept.weight.count, 2);
    EXPECT_GT(cost.split_backward->input_ns, 0);
    EXPECT_GT(cost.split_backward->weight_ns, 0);
    if (layer_class.kind == LayerKind::attention) {
      EXPECT_EQ(cost.split_backward->kept_bytes, value * 6 * h);
    } else if (layer_class.kind == LayerKind::mlp) {
      EXPECT_EQ(cost.split_backward->kept_bytes, value * 2 * (h + f));
    }
  }
  for (const auto& [layer, state] : layers) EXPECT_EQ(state.gradients.abs().max().item<float>(), 0);
}

}  // namespace
}  // namespace frostpipe
