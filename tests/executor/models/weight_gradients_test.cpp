// Oracles: the whole backward, bitwise; the memory meter, and numbers of values counted by hand.
#include "executor/models/weight_gradients.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <numeric>

#include "executor/device/memory_meter.h"
#include "executor/models/layers.h"
#include "executor/models/task.h"
#include "tests/executor/random_weights.h"
#include "tests/executor/small_model.h"

namespace frostpipe::test {
namespace {

/// All layers of a small model, one micro-batch.
class SplitModel {
 public:
  SplitModel(TransformerConfig config, DType dtype) : config_(std::move(config)) {
    const LayerTypes types = layer_types_of(dtype);
    for (int layer = 0; layer < 8; ++layer) {
      layers_.push_back(make_layer_state(parameters_of(config_, layer), types, at::kCPU, true, 0));
      randomise_layer(config_, layer, 5, layers_.back());
      round_weights(layers_.back());
    }
    const std::unique_ptr<Samples> samples = small_samples(config_, 6);
    std::vector<int> order(6);
    std::iota(order.begin(), order.end(), 0);
    const MiniBatch batch = mini_batch(*samples, order, 6, 0);
    batch_ = samples->load(batch, batch.samples, types.computed, /*with_input=*/true);
  }

  /// The layers from `first` on; returns the loss, with its graph. `input` is that of layer `first`.
  at::Tensor loss(int first = 0, at::Tensor input = {}) {
    for (int layer = first; layer < 8; ++layer)
      input = forward_layer(config_, layer, layers_[layer].parameters, input, batch_);
    return loss_sum(config_, input, batch_, 0);
  }

  /// Clears them.
  std::vector<at::Tensor> take_gradients() {
    std::vector<at::Tensor> taken;
    for (LayerState& layer : layers_) {
      taken.push_back(layer.gradients.clone());
      layer.gradients.zero_();
    }
    return taken;
  }
  std::int64_t num_tokens() const { return batch_.num_tokens(); }
  at::Tensor forward(int layer, const at::Tensor& input) {
    return forward_layer(config_, layer, layers_[layer].parameters, input, batch_);
  }

 private:
  TransformerConfig config_;
  std::vector<LayerState> layers_;
  MicroBatch batch_;
};

void input_gradients(WeightGradients& later, const at::Tensor& output, const at::Tensor& gradient) {
  const DeferWeightGradients deferred(later);
  torch::autograd::backward({output}, {gradient});
}

TEST(WeightGradients, OfEveryHeadAreThoseOfTheWholeBackwardToTheBit) {
  for (TransformerConfig config : small_configs()) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBFloat16}) {
      const std::string what = fmt::format("{} {}", name_of(config), to_string(dtype));
      SplitModel model(config, dtype);
      for (int micro_batch = 0; micro_batch < 2; ++micro_batch) {
        const at::Tensor loss = model.loss();
        torch::autograd::backward({loss}, {at::ones_like(loss)});
      }
      const std::vector<at::Tensor> whole = model.take_gradients();
      std::vector<WeightGradients> later(2);
      for (WeightGradients& one : later) {
        const at::Tensor loss = model.loss();
        input_gradients(one, loss, at::ones_like(loss));
      }
      for (WeightGradients& one : later) {
        EXPECT_GT(one.bytes(), 0) << what;
        one.compute();
        EXPECT_EQ(one.bytes(), 0) << what;
      }
      const std::vector<at::Tensor> split = model.take_gradients();
      for (int layer = 0; layer < 8; ++layer)
        EXPECT_TRUE(at::equal(whole[layer], split[layer])) << what << " " << layer;
    }
  }
}

TEST(WeightGradients, InputGradientIsThatOfTheWholeBackward) {
  SplitModel model(small_config(), DType::kFloat32);
  const at::Tensor values = at::randn({model.num_tokens(), 16});
  const auto input_gradient = [&](WeightGradients* later) {
    at::Tensor input = values.clone().requires_grad_(true);
    const at::Tensor loss = model.loss(3, input);
    if (later) {
      input_gradients(*later, loss, at::ones_like(loss));
    } else {
      torch::autograd::backward({loss}, {at::ones_like(loss)});
    }
    return input.grad();
  };
  WeightGradients later;
  EXPECT_TRUE(at::equal(input_gradient(nullptr), input_gradient(&later)));
}

/// By hand, float32 values per token: attention reads h for 3 h and h for h; the MLP half reads h for f and f for h.
TEST(WeightGradients, HoldWhatTheMeterCountsAndNothingAfterwards) {
  MemoryMeter::install();
  for (const Family family : {Family::bert, Family::gpt2}) {
    const TransformerConfig config =
        small_config(family, family == Family::bert ? Task::sequence_classification : Task::causal_language_modeling);
    SplitModel model(config, DType::kFloat32);
    const std::int64_t h = 16, f = 24, tokens = model.num_tokens();
    for (const int layer : {1, 2}) {
      // The input belongs to the previous layer; a separate copy here shows whether W holds it.
      const Bytes before = MemoryMeter::live_bytes();
      WeightGradients later;
      {
        at::Tensor input = at::randn({tokens, h}).requires_grad_(true);
        const at::Tensor output = model.forward(layer, input);
        input_gradients(later, output, at::ones_like(output));
      }
      const std::int64_t values = layer == 1 ? h + 3 * h + h + h : h + f + f + h;
      EXPECT_EQ(later.bytes(), 4 * tokens * values) << to_string(family) << " " << layer;
      EXPECT_EQ(MemoryMeter::live_bytes() - before, later.bytes()) << to_string(family) << " " << layer;
      later.compute();
      EXPECT_EQ(MemoryMeter::live_bytes(), before) << to_string(family) << " " << layer;
    }
  }
}

}  // namespace
}  // namespace frostpipe::test
