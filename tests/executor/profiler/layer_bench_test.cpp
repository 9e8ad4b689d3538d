#include "executor/profiler/layer_bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <vector>

#include "profiles/estimates/estimate.h"
#include "tests/executor/random_weights.h"
#include "tests/executor/small_model.h"

namespace frostpipe {
namespace {

using Lengths = std::vector<std::int64_t>;

/// Computed by hand: the quarters' middles of {1, 1, 2, 2, 4, 4, 9, 9} are 1, 2, 4, 9, 16 tokens; four samples of 8
/// tokens have 32. If the two longest are cut at 10, the others have the remaining 12.
TEST(MadeUpLengths, FollowTheDataAndHaveTheMean) {
  const std::vector<int> data{1, 1, 2, 2, 4, 4, 9, 9};
  EXPECT_EQ(synthetic_lengths(4, 4, data, 512), (Lengths{1, 2, 4, 9}));
  EXPECT_EQ(synthetic_lengths(4, 8, data, 512), (Lengths{2, 4, 8, 18}));
  EXPECT_EQ(synthetic_lengths(4, 8, data, 10), (Lengths{4, 8, 10, 10}));
  EXPECT_EQ(synthetic_lengths(3, 5, {}, 512), (Lengths{5, 5, 5}));
}

/// By hand: the mean is 3.4, so ten samples of "3 tokens" have 34 tokens, and ten of 4 tokens have 40.
TEST(MadeUpLengths, HaveTheDatasOwnMeanWhereItRoundsToTheirs) {
  const std::vector<int> data{2, 2, 2, 2, 9};
  EXPECT_THAT(synthetic_lengths(10, 3, data, 512), testing::ElementsAre(2, 2, 2, 2, 2, 2, 2, 2, 9, 9));
  const Lengths others = synthetic_lengths(10, 4, data, 512);
  EXPECT_EQ(std::accumulate(others.begin(), others.end(), std::int64_t{0}), 40);
}

/// The bytes of a sample of 3 tokens, measured with 3.4 tokens on average.
TEST(LayerSamplesTest, BytesAreThoseOfTheShapesTokens) {
  const LayerSamples kept{.output_bytes = 340, .saved_activation_bytes = 680, .workspace_bytes = 34, .longer = 3.4 / 3};
  const LayerCost cost = cost_from(kept);
  EXPECT_EQ(cost.output_activation_bytes, 300);
  EXPECT_EQ(cost.saved_activation_bytes, 600);
  EXPECT_EQ(cost.workspace_bytes, 30);
}

/// A small model, GPT-2 if no other is given, with everything that a benchmark of its layers needs.
class SmallBench {
 public:
  explicit SmallBench(TransformerConfig config = test::small_config(Family::gpt2, Task::causal_language_modeling))
      : config_(std::move(config)),
        model_(model_of(config_, "small")),
        layers_(made_layers()),
        device_(make_device("cpu", 0)),
        bench_(config_, model_, layers_, *device_, types_, {}) {}
  LayerBench& bench() { return bench_; }
  int num_layers() const { return static_cast<int>(model_.layers.size()); }
  float largest_gradient() const {
    float largest = 0;
    for (const auto& [layer, state] : layers_) largest = std::max(largest, state.gradients.abs().max().item<float>());
    return largest;
  }

 private:
  std::map<int, LayerState> made_layers() const {
    std::map<int, LayerState> layers;
    for (int layer = 0; layer < static_cast<int>(model_.layers.size()); ++layer) {
      LayerState& state =
          layers.emplace(layer, make_layer_state(parameters_of(config_, layer), types_, at::kCPU, true, 0))
              .first->second;
      test::randomise_layer(config_, layer, 5, state);
      round_weights(state);
    }
    return layers;
  }

  const LayerTypes types_ = layer_types_of(DType::kFloat32);
  const TransformerConfig config_;
  const Model model_;
  std::map<int, LayerState> layers_;
  const std::unique_ptr<ComputeDevice> device_;
  LayerBench bench_;
};

/// Float32 values a token, by hand: see HoldWhatTheMeterCountsAndNothingAfterwards. 2 samples of 4 tokens.
TEST(LayerBench, MeasuresABackwardInTwoPieces) {
  SmallBench small;
  SamplesByClass samples;
  for (int pass = 0; pass < 2; ++pass) small.bench().measure(2, 4, samples);
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
  EXPECT_EQ(small.largest_gradient(), 0);
}

/// Models that keep different values, with a vocabulary that is large beside them.
std::vector<TransformerConfig> models_with_large_vocabularies() {
  std::vector<TransformerConfig> all{test::small_config(Family::gpt2, Task::causal_language_modeling),
                                     test::small_llama(),
                                     test::small_decoder(),
                                     test::small_neox(),
                                     test::small_config(Family::bert, Task::question_answering),
                                     test::small_modernbert(Task::token_classification)};
  for (TransformerConfig& config : all) {
    config.hidden_size = 64;
    config.num_attention_heads = 4;
    if (config.family == Family::llama) config.num_key_value_heads = 2;
    config.intermediate_size = 256;
    config.vocab_size = 3000;
    config.max_position_embeddings = 512;
  }
  return all;
}

/// Compares the layers' measured bytes with estimated ones. An estimate leaves out places, targets and masks, a few
/// values for each token, and of the workspace what is less than two activations.
void expect_counted(const TransformerConfig& config, const Profile& estimated, MeasurementKey key,
                    SamplesByClass& samples) {
  const Bytes tokens = Bytes{4} * key.micro_batch_size * key.tokens;
  for (key.layer = 0; key.layer < num_layers(config); ++key.layer) {
    SCOPED_TRACE(fmt::format("{} {}", test::name_of(config), describe(key)));
    const LayerCost measured = cost_from(samples.at(class_of(config, estimated.model, key.layer))),
                    counted = key.context_tokens > 0 ? *cost_of_slice(estimated, key) : cost_of(estimated, key);
    const auto expect_near = [](Bytes one, Bytes other, double part, Bytes values) {
      EXPECT_NEAR(static_cast<double>(one), static_cast<double>(other),
                  part * static_cast<double>(other) + static_cast<double>(values));
    };
    expect_near(counted.saved_activation_bytes, measured.saved_activation_bytes, 0.01, 8 * tokens);
    expect_near(counted.workspace_bytes, measured.workspace_bytes, 0.1, 2 * config.hidden_size * tokens);
    if (measured.split_backward)
      expect_near(counted.split_backward->kept_bytes, measured.split_backward->kept_bytes, 0.01, 8 * tokens);
  }
}

/// Oracle: the meter of live bytes, for whole samples and for slices of them.
TEST(LayerBench, HoldsWhatAnEstimateCounts) {
  constexpr int kSamples = 4, kTokens = 160;
  for (const TransformerConfig& config : models_with_large_vocabularies()) {
    SmallBench small(config);
    const Profile estimated = estimate({"small", config, kTokens}, {.global_batch_size = kSamples}).profile;
    SamplesByClass whole, slices;
    for (int pass = 0; pass < 2; ++pass) small.bench().measure(kSamples, kTokens, whole);
    MeasurementKey key{.device_type = "estimated", .micro_batch_size = kSamples, .tokens = kTokens};
    expect_counted(config, estimated, key, whole);
    if (!estimated.model.is_causal) continue;
    key.tokens = key.context_tokens = kTokens / 2;
    for (int pass = 0; pass < 2; ++pass) small.bench().measure_slice(kSamples, key.tokens, key.context_tokens, slices);
    expect_counted(config, estimated, key, slices);
  }
}

/// 2 samples of 3 tokens after 5 others; 16 float32 values a token.
TEST(LayerBench, MeasuresATokenSlice) {
  SmallBench small;
  SamplesByClass samples;
  for (int pass = 0; pass < 2; ++pass) small.bench().measure_slice(2, 3, 5, samples);
  double forwards = 0, backwards = 0;
  for (auto& [layer_class, kept] : samples) {
    const LayerCost cost = cost_from(kept);
    EXPECT_FALSE(cost.split_backward);
    EXPECT_GT(cost.forward_ns, 0);
    EXPECT_GT(cost.weight_gradient_ns, 0);
    EXPECT_GT(cost.frozen_forward_ns, 0);
    forwards += kept.forward.count;
    backwards += kept.backward.count;
    if (layer_class.kind == LayerKind::attention || layer_class.kind == LayerKind::mlp) {
      EXPECT_EQ(cost.output_activation_bytes, 4 * 2 * 3 * 16);
    }
  }
  EXPECT_EQ(forwards, 2 * small.num_layers());
  EXPECT_EQ(backwards, 2 * small.num_layers());
  EXPECT_EQ(small.largest_gradient(), 0);
}

}  // namespace
}  // namespace frostpipe
