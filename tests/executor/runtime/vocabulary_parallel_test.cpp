// A vocabulary split over tensor ranks, in training and in answers of a session. Oracle: the same whole layers in one
// process.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "executor/models/layers.h"
#include "executor/models/shards.h"
#include "executor/models/task.h"
#include "tests/executor/agreed_loss.h"
#include "tests/executor/random_weights.h"
#include "tests/executor/ranks.h"
#include "tests/executor/runtime/job.h"
#include "tests/executor/small_model.h"

namespace frostpipe::test {
namespace {

TransformerConfig text_model() {
  TransformerConfig config = small_config(Family::gpt2, Task::causal_language_modeling);
  config.vocab_size = 41;
  config.ties_embeddings = false;
  return config;
}

Phase tensor_phase(int p, int m) {
  Phase phase = small_phase(p, 1, m, "1F1B", 0);
  phase.layout.tensor_parallel_size = 2;
  return phase;
}

void start(RankSession& session, const Phase& phase, const TransformerConfig& config) {
  session.start(phase, 0, [&](int layer, LayerState& state, std::map<int, OffloadedMoments>&) {
    randomise_layer(config, layer, kSeed, state);
    round_weights(state);
  });
}

/// All layers, on the host.
class WholeModel {
 public:
  WholeModel(const TransformerConfig& config, DType dtype) : config_(config) {
    for (int layer = 0; layer < 8; ++layer) {
      layers_.push_back(make_layer_state(parameters_of(config, layer), layer_types_of(dtype), at::kCPU, true, 0));
      randomise_layer(config, layer, kSeed, layers_.back());
      round_weights(layers_.back());
    }
  }
  at::Tensor logits(const MicroBatch& batch) const {
    at::Tensor x;
    for (int layer = 0; layer < 8; ++layer) x = forward_layer(config_, layer, layers_[layer].parameters, x, batch);
    return x;
  }
  const at::Tensor& gradients(int layer) const { return layers_.at(layer).gradients; }

 private:
  TransformerConfig config_;
  std::vector<LayerState> layers_;
};

/// Numbers of the first samples.
std::vector<int> first_samples(int count) {
  std::vector<int> samples(count);
  std::iota(samples.begin(), samples.end(), 0);
  return samples;
}

struct SmoothingCase {
  DType dtype;
  double bound;
};

/// In bfloat16 the sums over tensor ranks are rounded differently from one product.
void smoothed_losses_equal_one_process(const RankEnvironment& self, int p) {
  Job job(self);
  job.train_now(text_model());
  job.label_smoothing = 0.1;
  const std::unique_ptr<Samples> data = small_samples(job.config, 11);
  const std::vector<int> samples = first_samples(11);
  const MiniBatch batch = mini_batch(*data, samples, 11, 0);
  for (const auto& [dtype, bound] : {SmoothingCase{DType::kFloat64, 1e-11}, SmoothingCase{DType::kBFloat16, 0.05}}) {
    const std::string what(to_string(dtype));
    RankSession session = job.session(*data, Optimizer::kSgd, dtype);
    start(session, tensor_phase(p, 3), job.config);
    Trace trace;
    const IterationResult result = session.runner()->run_iteration(
        batch, nullptr, 0, {.rule = {.optimizer = Optimizer::kSgd}, .applied = false}, trace);
    const MicroBatch loaded = job.whole(*data, batch, dtype);
    const WholeModel whole(job.config, dtype);
    const at::Tensor loss = loss_sum(job.config, whole.logits(loaded), loaded, job.label_smoothing) / 11.0;
    torch::autograd::backward({loss}, {});
    const double found = agreed_loss(*job.communicator, result), expected = loss.item<double>();
    CHECK_RANK(std::abs(found - expected) <= bound, fmt::format("{}: loss {} instead of {}", what, found, expected));
    for (const auto& [layer, state] : session.layers()) {
      const at::Tensor g0 = taken(parameters_of(job.config, layer), whole.gradients(layer), {}, {.slice = state.slice});
      const double error = l2(state.gradients.to(at::kCPU) - g0);
      CHECK_RANK(error <= bound * l2(g0), fmt::format("{}: layer {}: {} of {}", what, layer, error, l2(g0)));
    }
  }
}

RANK_TEST(VocabularyParallel, SmoothedLossesOf1StagesEqualOneProcess, 2) { smoothed_losses_equal_one_process(self, 1); }
RANK_TEST(VocabularyParallel, SmoothedLossesOf2StagesEqualOneProcess, 4) { smoothed_losses_equal_one_process(self, 2); }

/// Loss, number of predicted tokens and of right ones: with so many tokens, some are right by chance.
void answers_equal_one_process(const RankEnvironment& self, int p) {
  Job job(self);
  job.train_now(text_model());
  const int num_samples = 60;
  const std::unique_ptr<Samples> data = small_samples(job.config, num_samples);
  const std::vector<int> samples = first_samples(num_samples);
  const MiniBatch batch = mini_batch(*data, samples, num_samples, 0);
  RankSession session = job.session(*data, Optimizer::kSgd, DType::kFloat64);
  start(session, tensor_phase(p, 1), job.config);
  const std::vector<double> found = job.communicator->sum(session.runner()->answers(*data, samples, 4, 100));
  const at::NoGradGuard no_grad;
  const MicroBatch loaded = job.whole(*data, batch, DType::kFloat64);
  const WholeModel whole(job.config, DType::kFloat64);
  const at::Tensor expected = answers_of(job.config, whole.logits(loaded), loaded);
  CHECK_RANK(expected.select(1, 2).sum().item<double>() > 0, "some are right");
  for (int sample = 0; sample < num_samples; ++sample)
    for (int value = 0; value < 3; ++value) {
      const double e = expected[sample][value].item<double>(), f = found[3 * sample + value];
      CHECK_RANK(std::abs(e - f) <= (value == 0 ? 1e-11 : 0), fmt::format("sample {}: {} instead of {}", sample, f, e));
    }
}

RANK_TEST(VocabularyParallel, AnswersOf1StagesEqualOneProcess, 2) { answers_equal_one_process(self, 1); }
RANK_TEST(VocabularyParallel, AnswersOf2StagesEqualOneProcess, 4) { answers_equal_one_process(self, 2); }

}  // namespace
}  // namespace frostpipe::test
