// Frozen layers in bfloat16, within a run in float32. Oracles: the same layer in float32 with matrices rounded by the
// test; the run whose frozen layers compute in float32.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <sstream>

#include "executor/device/device.h"
#include "executor/runtime/transformer_stage.h"
#include "tests/executor/random_weights.h"
#include "tests/executor/small_model.h"

namespace frostpipe::test {
namespace {

constexpr LayerTypes kWhole{at::kFloat, at::kFloat}, kRounded{at::kFloat, at::kFloat, at::kBFloat16};
constexpr int kSamples = 8, kHead = 7;

/// A model on this process, stage by stage.
struct StagedModel {
  StagedModel(const TransformerConfig& with, LayerTypes types)
      : config(with),
        model(model_of(config, "small")),
        samples(small_samples(config, kSamples)),
        factory({.config = config, .model = model, .data = *samples, .types = types, .device = at::kCPU}) {
    config.initializer_range = 0.3;  // large enough that attention and MLP matter beside the residuals
    std::iota(order.begin(), order.end(), 0);
    batch = mini_batch(*samples, order, kSamples, 0);
    for (int layer = 0; layer <= kHead; ++layer) {
      layers.emplace(layer, factory.make_layer(layer, /*trains=*/true, TensorSlice{}));
      randomise_layer(config, layer, 5, layers.at(layer));
    }
  }
  void freeze_before(int layer) {
    for (; frozen < layer; ++frozen) freeze(layers.at(frozen));
  }
  std::unique_ptr<StageCompute> stage(LayerRange range) {
    Phase phase = small_phase(1, 1, 1, "1F1B", frozen);
    phase.partition.clear();
    for (const LayerRange part : {LayerRange{0, range.begin}, range, LayerRange{range.end, kHead + 1}})
      if (part.begin < part.end) phase.partition.push_back(part);
    phase.layout.pipeline_parallel_size = static_cast<int>(phase.partition.size());
    return factory.make_stage(phase, range.begin > 0 ? 1 : 0, layers, /*ranks=*/{});
  }
  at::Tensor evaluate(LayerRange range, const at::Tensor& input = {}) { return stage(range)->evaluate(batch, input); }
  /// Losses of optimizer steps.
  std::vector<double> train(int steps) {
    std::vector<double> losses;
    const std::unique_ptr<StageCompute> whole = stage({0, kHead + 1});
    for (int step = 0; step < steps; ++step) {
      whole->begin_iteration(batch, {0, kSamples}, nullptr, {});
      whole->forward(Part{0}, {0, kSamples}, {});
      whole->backward(Part{0}, {});
      whole->update({.optimizer = Optimizer::kSgd, .learning_rate = 0.01});
      for (auto& [layer, state] : layers)
        if (state.trains()) state.gradients.zero_();
      losses.push_back(whole->loss().item<double>());
    }
    return losses;
  }

  TransformerConfig config;
  Model model;
  std::unique_ptr<Samples> samples;
  TransformerStageFactory factory;
  std::vector<int> order = std::vector<int>(kSamples);
  MiniBatch batch;
  std::map<int, LayerState> layers;
  int frozen = 0;  // layers that are frozen
};

at::Tensor rounded(const at::Tensor& values) { return values.to(at::kBFloat16).to(at::kFloat); }

double relative_error(const at::Tensor& actual, const at::Tensor& expected) {
  return ((actual - expected).norm() / expected.norm()).item<double>();
}

// A bfloat16 has 8 bits, so rounding changes a value by at most 2^-9 of it. A layer rounds the result of each of its up
// to six operations.
TEST(FrozenDtype, LayersEqualFloat32OnRoundedMatricesWithinTheRoundingOfActivations) {
  for (const TransformerConfig& config : small_configs()) {
    StagedModel job(config, kRounded), by_hand(config, kWhole);
    job.freeze_before(kHead);
    by_hand.freeze_before(kHead);
    for (auto& [layer, state] : by_hand.layers) {
      const std::vector<ParameterSpec> specs = parameters_of(config, layer);
      const std::vector<at::Tensor> parameters = kept_parameters(state);
      for (std::size_t i = 0; i < specs.size(); ++i)
        if (specs[i].projects) parameters[i].copy_(rounded(parameters[i]));
    }
    at::Tensor input;
    for (int layer = 0; layer < kHead; ++layer) {
      const at::Tensor output = job.evaluate({layer, layer + 1}, input),
                       expected = by_hand.evaluate({layer, layer + 1}, input);
      const std::string what = fmt::format("{}: layer {}", name_of(config), layer);
      EXPECT_EQ(output.scalar_type(), at::kFloat) << what;
      EXPECT_TRUE(at::equal(output, rounded(output))) << what << ": was computed in bfloat16";
      EXPECT_LE(relative_error(output, expected), 6.0 / 512) << what;
      for (std::size_t i = 0; i < by_hand.layers.at(layer).parameters.size(); ++i) {
        EXPECT_TRUE(at::equal(job.layers.at(layer).parameters[i].value.to(at::kFloat),
                              by_hand.layers.at(layer).parameters[i].value))
            << what << ": parameter " << i;
      }
      input = output;
    }
  }
}

TEST(FrozenDtype, APrefixOverSeveralStagesEqualsThatOfOneToTheBit) {
  for (const TransformerConfig& config : small_configs()) {
    StagedModel job(config, kRounded);
    job.freeze_before(kHead);
    const at::Tensor first = job.evaluate({0, 2}), second = job.evaluate({2, 5}, first);
    EXPECT_TRUE(at::equal(job.evaluate({5, kHead}, second), job.evaluate({0, kHead}))) << name_of(config);
  }
}

TEST(FrozenDtype, ChangesNothingWhileNothingIsFrozen) {
  for (const TransformerConfig& config : small_configs()) {
    StagedModel job(config, kRounded), other(config, kWhole);
    EXPECT_EQ(job.train(3), other.train(3)) << name_of(config);
    for (const auto& [layer, state] : job.layers)
      EXPECT_TRUE(at::equal(state.weights, other.layers.at(layer).weights)) << name_of(config) << layer;
  }
}

TEST(FrozenDtype, KeepsTheWeightsOfFrozenLayersAndTrainsTheOthersAsBefore) {
  for (const TransformerConfig& config : small_configs()) {
    StagedModel job(config, kRounded), other(config, kWhole);
    for (StagedModel* const one : {&job, &other}) {
      one->train(2);
      one->freeze_before(3);
    }
    const std::vector<double> losses = job.train(3), expected = other.train(3);
    EXPECT_NE(losses, expected) << name_of(config);
    for (std::size_t step = 0; step < losses.size(); ++step)
      EXPECT_NEAR(losses[step], expected[step], 0.02 * expected[step]) << name_of(config);
    for (const auto& [layer, state] : job.layers) {
      EXPECT_EQ(state.weights.scalar_type(), at::kFloat);
      EXPECT_EQ(at::equal(state.weights, other.layers.at(layer).weights), layer < 3) << name_of(config) << layer;
      EXPECT_TRUE(layer < 3 || !state.rounded.defined());
    }
  }
}

// Oracle: Linux's description of the processor.
TEST(FrozenDtype, TheProcessorsInstructionsForBfloat16AreKnown) {
  std::ifstream file("/proc/cpuinfo");
  std::stringstream words;
  words << file.rdbuf();
  bool has_them = false;
  for (std::string word; words >> word;) has_them |= word == "avx512_bf16" || word == "amx_bf16" || word == "bf16";
  EXPECT_EQ(multiplies_in_bfloat16(), has_them);
  EXPECT_EQ(notes_on_bfloat16("cpu", DType::kFloat32, DType::kBFloat16).empty(), has_them);
  EXPECT_TRUE(notes_on_bfloat16("cpu", DType::kFloat32, std::nullopt).empty());
  EXPECT_TRUE(notes_on_bfloat16("cuda", DType::kFloat32, DType::kBFloat16).empty());
}

}  // namespace
}  // namespace frostpipe::test
