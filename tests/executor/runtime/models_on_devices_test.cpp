// Each family with the widths of real models (heads of 64 values) on a device. Oracle: the same on the CPU. The tests
// also run on the CPU a second time, which must be bitwise equal to the first.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "executor/models/packed_attention.h"
#include "tests/executor/random_weights.h"
#include "tests/executor/runtime/job.h"
#include "tests/executor/runtime/repeated_steps.h"
#include "tests/executor/small_model.h"
#include "tests/executor/test_device.h"
#include "tests/executor/wrapped_device.h"

namespace frostpipe::test {
namespace {

constexpr int kSamplesOnDevice = 8;

/// Two heads of 64 values, which fused attention accepts.
std::vector<TransformerConfig> wide_configs() {
  std::vector<TransformerConfig> configs = small_configs();
  for (TransformerConfig& config : configs) {
    config.hidden_size = 128;
    config.intermediate_size = 512;
  }
  return configs;
}

struct TrainedModel {
  std::vector<double> losses;
  std::map<int, at::Tensor> gradients;  // of the first step, by layer
  std::map<int, at::Tensor> weights;    // after the last
};

struct Training {
  DType dtype = DType::kFloat32;
  Optimizer optimizer = Optimizer::kSgd;
  int first_trainable_layer = 0;
  int steps = 3;
};

TrainedModel train(const std::string& device, const TransformerConfig& config, const Training& how) {
  Job job(RankEnvironment{}, make_device(device, 0));
  job.train_now(config);
  const std::unique_ptr<Samples> data = small_samples(config, kSamplesOnDevice);
  std::vector<int> order(kSamplesOnDevice);
  std::iota(order.begin(), order.end(), 0);
  const MiniBatch batch = mini_batch(*data, order, kSamplesOnDevice, 0);
  RankSession session = job.session(*data, how.optimizer, how.dtype);
  Phase phase = small_phase(1, 1, 2, "1F1B", how.first_trainable_layer);
  phase.partition = {{0, num_layers(config)}};
  session.start(phase, 0, [&](int layer, LayerState& state, std::map<int, OffloadedMoments>&) {
    randomise_layer(config, layer, kSeed, state);
  });
  TrainedModel outcome;
  for (int step = 0; step < how.steps; ++step) {
    Trace trace;
    const UpdateRule rule{.optimizer = how.optimizer, .learning_rate = 0.002, .weight_decay = 0.1, .step = step + 1};
    if (step == 0) {
      session.runner()->run_iteration(batch, nullptr, 0, {.rule = rule, .applied = false}, trace);
      for (auto& [layer, state] : session.layers()) {
        if (!state.trains()) continue;
        outcome.gradients[layer] = state.gradients.to(at::kCPU, at::kDouble, /*non_blocking=*/false, /*copy=*/true);
        state.gradients.zero_();
      }
    }
    outcome.losses.push_back(
        session.runner()->run_iteration(batch, nullptr, step, {.rule = rule, .gradient_clip = 1}, trace).loss);
  }
  for (const auto& [layer, state] : session.layers()) outcome.weights[layer] = state.weights.to(at::kCPU, at::kDouble);
  return outcome;
}

double norm_of_all(const std::map<int, at::Tensor>& tensors) {
  double squares = 0;
  for (const auto& [layer, tensor] : tensors) squares += std::pow(l2(tensor), 2);
  return std::sqrt(squares);
}

class ModelsOnDevices : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const auto reason = reason_without_device(GetParam())) GTEST_SKIP() << *reason;
  }
  /// The largest allowed differences from the CPU's results.
  static double within(double on_another_device) { return GetParam() == "cpu" ? 0 : on_another_device; }
};
INSTANTIATE_TEST_SUITE_P(On, ModelsOnDevices, testing::Values("cpu", "cuda"),
                         [](const auto& info) { return info.param; });

/// Within the design's bounds (check_gradients.h); updates are a learning rate times gradients.
void expect_trained_alike(const TrainedModel& expected, const TrainedModel& actual, double share_of_bounds,
                          const std::string& what) {
  const double norm = norm_of_all(expected.gradients);
  for (const auto& [layer, gradient] : expected.gradients)
    EXPECT_LE(l2(actual.gradients.at(layer) - gradient), share_of_bounds * (1e-5 * l2(gradient) + 1e-6 * norm))
        << what << layer;
  for (const auto& [layer, weights] : expected.weights)
    EXPECT_LE(l2(actual.weights.at(layer) - weights), share_of_bounds * 1e-6 * l2(weights)) << what << layer;
  for (std::size_t step = 0; step < expected.losses.size(); ++step)
    EXPECT_NEAR(actual.losses[step], expected.losses[step], share_of_bounds * 1e-5 * expected.losses[step]) << what;
}

/// The first that scripts/gpu-check asks of a GPU: forward, backward and update of a model in MiniLM's shape. It is
/// twice as deep and thrice as wide as the others here: roundings may be four times as large.
TEST_P(ModelsOnDevices, MinilmTrainsAsOnTheCpu) {
  TransformerConfig config = small_config();
  config.num_hidden_layers = 6;
  config.hidden_size = 384;
  config.intermediate_size = 1536;
  config.vocab_size = 30522;
  set_heads(config, 12);
  const Training how{.steps = 1};
  expect_trained_alike(train("cpu", config, how), train(GetParam(), config, how), within(4), "MiniLM");
}

/// Forward, backward and update in float32, with nothing and with a block frozen.
TEST_P(ModelsOnDevices, TrainInSinglePrecisionAsOnTheCpu) {
  for (const TransformerConfig& config : wide_configs()) {
    for (const int first_trainable_layer : {0, 3}) {
      const Training how{.first_trainable_layer = first_trainable_layer};
      expect_trained_alike(train("cpu", config, how), train(GetParam(), config, how), within(1),
                           fmt::format("{} from layer {}", name_of(config), first_trainable_layer));
    }
  }
}

/// bfloat16 has 8 bits: results are within 2 % of the CPU's own run in bfloat16, which adds products in another order.
/// Updates are proportional to gradients, since AdamW's first updates are as large for a gradient of rounding errors.
/// Such small updates hardly change a loss, so gradients and weights are compared too. Regression is left out: all its
/// gradients are proportional to the difference of two numbers, in which roundings of the larger one have no bound.
TEST_P(ModelsOnDevices, LossesInBfloat16FollowTheCpus) {
  for (const TransformerConfig& config : wide_configs()) {
    if (config.problem_type == ProblemType::regression) continue;
    const Training how{.dtype = DType::kBFloat16, .steps = 5};
    const TrainedModel expected = train("cpu", config, how), actual = train(GetParam(), config, how);
    for (std::size_t step = 0; step < expected.losses.size(); ++step)
      EXPECT_NEAR(actual.losses[step], expected.losses[step], within(0.02 * expected.losses[step])) << name_of(config);
    const double norm = norm_of_all(expected.gradients);
    for (const auto& [layer, gradient] : expected.gradients)
      EXPECT_LE(l2(actual.gradients.at(layer) - gradient), within(0.05 * l2(gradient) + 0.01 * norm))
          << name_of(config) << layer;
    for (const auto& [layer, weights] : expected.weights)
      EXPECT_LE(l2(actual.weights.at(layer) - weights), within(1e-4 * l2(weights))) << name_of(config) << layer;
  }
}

/// Attention of two heads of 64 values, and its gradients, in float64 on the CPU.
std::vector<at::Tensor> attention_on(const at::Device& device, at::ScalarType type, const MicroBatch& batch,
                                     bool has_one_query, bool is_causal, bool by_autograd) {
  TransformerConfig config = wide_configs().front();
  config.is_causal = is_causal;
  const at::Tensor values = at::sin(at::arange(batch.num_tokens() * 384, at::kDouble)).view({-1, 384});
  const auto leaf = [&](const at::Tensor& value) {
    return value.to(device, type, false, /*copy=*/true).requires_grad_(true);
  };
  AttentionInput input{leaf(values)};
  if (has_one_query)
    input = {.query = leaf(values.narrow(0, 0, batch.size()).narrow(1, 0, 128)),
             .key_value = leaf(values.narrow(1, 128, 256)),
             .has_one_query = true};
  EXPECT_EQ(has_kernel_for_packed(input, rule_of(config, /*layer=*/1)), device.is_cuda());
  const at::Tensor output =
      by_autograd ? attend_by_autograd(config, /*layer=*/1, input, batch) : attend(config, /*layer=*/1, input, batch);
  const at::Tensor gradient = at::cos(at::arange(output.numel(), at::kDouble)).view(output.sizes());
  torch::autograd::backward({output}, {gradient.to(device, type)});
  std::vector<at::Tensor> results{output.detach(), input.query.grad()};
  if (has_one_query) results.push_back(input.key_value.grad());
  for (at::Tensor& result : results) result = result.to(at::kCPU, at::kDouble);
  return results;
}

/// Samples of unequal lengths. Oracle: LibTorch's autograd in float64 on the CPU, sample by sample.
TEST_P(ModelsOnDevices, AttendToPackedSamplesAsOneByOne) {
  const std::unique_ptr<ComputeDevice> device = make_device(GetParam(), 0);
  MicroBatch batch;
  batch.lengths = {1, 5, 5, 70, 3};
  for (const auto& [has_one_query, is_causal] :
       {std::pair(false, false), std::pair(false, true), std::pair(true, false)}) {
    const auto expected = attention_on(at::kCPU, at::kDouble, batch, has_one_query, is_causal, /*by_autograd=*/true);
    for (const auto& [type, bound] : {std::pair(at::kFloat, 1e-5), std::pair(at::kBFloat16, 0.02)}) {
      const auto actual = attention_on(device->torch_device(), type, batch, has_one_query, is_causal, false);
      for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_LE(l2(actual[i] - expected[i]), bound * l2(expected[i])) << i << type << has_one_query << is_causal;
    }
  }
}

/// A device on which the rank loses a peer while it waits, once `is_lost` is set.
class LosingDevice final : public WrappedDevice {
 public:
  LosingDevice(std::unique_ptr<ComputeDevice> device, const bool& is_lost)
      : WrappedDevice(std::move(device)), is_lost_(is_lost) {}
  void synchronize() override {
    if (is_lost_) throw PeerLost("rank 1 is gone");
    WrappedDevice::synchronize();
  }

 private:
  const bool& is_lost_;
};

/// On the CPU an update is done when it has been issued. On other devices it may depend on data that never arrived, so
/// its layers are not kept. Oracle: the rule.
TEST_P(ModelsOnDevices, KeepLayersAfterALossWhoseUpdateIsDone) {
  bool is_lost = false;
  Job job(RankEnvironment{}, std::make_unique<LosingDevice>(make_device(GetParam(), 0), is_lost));
  const std::unique_ptr<Samples> data = small_samples(job.config, kSamplesOnDevice);
  std::vector<int> order(kSamplesOnDevice);
  std::iota(order.begin(), order.end(), 0);
  const MiniBatch batch = mini_batch(*data, order, kSamplesOnDevice, 0);
  for (const bool is_in_update : {false, true}) {
    is_lost = false;
    RankSession session = job.session(*data, Optimizer::kSgd, DType::kFloat32);
    session.start(small_phase(1, 1, 2, "1F1B", 0), 0,
                  [&](int layer, LayerState& state, std::map<int, OffloadedMoments>&) {
                    randomise_layer(job.config, layer, kSeed, state);
                  });
    Trace trace;
    session.runner()->run_iteration(batch, nullptr, 0, {.rule = {.optimizer = Optimizer::kSgd}}, trace);
    is_lost = is_in_update;
    if (is_in_update) {
      EXPECT_THROW(session.runner()->run_iteration(batch, nullptr, 1, {.rule = {.optimizer = Optimizer::kSgd}}, trace),
                   PeerLost);
    }
    EXPECT_EQ(session.release().has_value(), !is_in_update || GetParam() == "cpu") << is_in_update;
  }
}

class CountedReplays final : public DeviceGraphs {
 public:
  CountedReplays(std::unique_ptr<DeviceGraphs> graphs, int& count) : graphs_(std::move(graphs)), count_(count) {}
  void capture(const std::function<void()>& work) override { graphs_->capture(work); }
  void replay(std::size_t graph) override {
    ++count_;
    graphs_->replay(graph);
  }

 private:
  std::unique_ptr<DeviceGraphs> graphs_;
  int& count_;
};

class ReplayCountingDevice final : public WrappedDevice {
 public:
  ReplayCountingDevice(std::unique_ptr<ComputeDevice> device, int& replays)
      : WrappedDevice(std::move(device)), replays_(replays) {}
  std::unique_ptr<DeviceGraphs> make_graphs() override {
    std::unique_ptr<DeviceGraphs> graphs = WrappedDevice::make_graphs();
    return graphs ? std::make_unique<CountedReplays>(std::move(graphs), replays_) : nullptr;
  }

 private:
  int& replays_;
};

/// A single rank captures its update too. Oracle: the same without graphs, within the effect of AdamW on rounding
/// errors of the norm: a value whose gradient is only rounding errors, such as a key's bias, moves by the learning
/// rate. In a head for questions both biases are such values, since a softmax over tokens cancels them; as it has few
/// weights, they are compared separately.
TEST_P(ModelsOnDevices, ReplayCapturedIterations) {
  constexpr double kLearningRates =
      15 * 0x1p-10;  // the sum over all steps; at most in opposite directions in the two runs
  const double both_biases = std::sqrt(2.0) * 2 * kLearningRates;
  const RepeatedSteps how{.optimizer = Optimizer::kAdamW, .dtype = DType::kFloat32, .learning_rate = 0x1p-10};
  for (const TransformerConfig& config : wide_configs()) {
    for (const int first_trainable_layer : {0, 3}) {
      int replays = 0;
      Job job(RankEnvironment{}, std::make_unique<ReplayCountingDevice>(make_device(GetParam(), 0), replays));
      job.train_now(config);
      const Phase phase = small_phase(1, 1, 2, "1F1B", first_trainable_layer);
      const Steps expected = repeated_steps(job, phase, /*cuda_graphs=*/false, how);
      EXPECT_EQ(replays, 0);
      const Steps actual = repeated_steps(job, phase, /*cuda_graphs=*/true, how);
      const int actions = 6;                                 // F0 B0 F1 B1, the reduction and the update
      const int iterations = config.reads_pictures ? 7 : 4;  // after the first iteration with the same lengths
      EXPECT_EQ(replays, GetParam() == "cpu" ? 0 : actions * iterations) << name_of(config);
      const std::string what = fmt::format("{} from layer {}: ", name_of(config), first_trainable_layer);
      for (std::size_t step = 0; step < expected.losses.size(); ++step)
        EXPECT_NEAR(actual.losses[step], expected.losses[step], within(1e-4 * expected.losses[step])) << what << step;
      const int head = expected.weights.rbegin()->first;
      for (const auto& [layer, weights] : expected.weights) {
        const double biases = layer == head && config.task == Task::question_answering ? both_biases : 0;
        EXPECT_LE(l2(actual.weights.at(layer) - weights), within(1e-3 * l2(weights) + biases)) << what << layer;
      }
    }
  }
}

/// A block's weights after three steps of AdamW, whose gradients have this scale.
at::Tensor updated(const at::Device& where, double scale) {
  const TransformerConfig config = wide_configs().front();
  LayerState state = make_layer_state(parameters_of(config, 1), layer_types_of(DType::kFloat32), where,
                                      /*trains=*/true, /*num_moments=*/2);
  randomise_layer(config, 1, kSeed, state);
  for (int step = 1; step <= 3; ++step) {
    state.gradients.copy_(at::arange(state.gradients.numel(), at::TensorOptions().dtype(at::kFloat)).sin());
    const at::Tensor divisor = at::full({}, 1 / scale, state.weights.options());
    update({&state}, {.learning_rate = 0.01, .weight_decay = 0.1, .step = step, .gradient_divisor = divisor});
  }
  return state.weights.to(at::kCPU);
}

/// With the same gradients, with and without clipping, the results differ by a few roundings of single precision.
TEST_P(ModelsOnDevices, UpdateAsTheCpuDoes) {
  const std::unique_ptr<ComputeDevice> device = make_device(GetParam(), 0);
  for (const double scale : {1.0, 0.37}) {
    const at::Tensor apart = updated(device->torch_device(), scale) - updated(at::kCPU, scale);
    EXPECT_LE(apart.abs().max().item<double>(), within(1e-6)) << "gradients times " << scale;
  }
}

}  // namespace
}  // namespace frostpipe::test
