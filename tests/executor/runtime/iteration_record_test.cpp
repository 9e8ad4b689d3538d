// Forwards and backwards that are recorded and replayed, in every layout and schedule that allows it. Only a GPU
// records (RanksOnDevice.RecordedIterations); on the CPU the same iterations are done as they come. Oracle of
// gradients: one process that knows no stages; of steps: the same without records.
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "executor/runtime/iteration_record.h"
#include "plan/schedule_rules.h"
#include "plan/stages.h"
#include "profiles/error.h"
#include "tests/executor/random_weights.h"
#include "tests/executor/ranks.h"
#include "tests/executor/runtime/check_gradients.h"
#include "tests/executor/runtime/job.h"
#include "tests/executor/small_model.h"

namespace frostpipe::test {
namespace {

constexpr int kLengthsRepeatAfter = 7;  // samples, of small_samples

/// With as many stages per rank as the schedule has at least, wholly frozen ones among them, which hand on to a stage
/// of their rank or to another rank, and with empty micro-batches.
void gradients_of_each_schedule(const RankEnvironment& self, int p, int d) {
  Job job(self);
  job.cuda_graphs = true;
  for (const std::string& schedule : plan_schedule_names()) {
    for (const int first_trainable : {0, 5}) {
      Phase phase = small_phase(p, d, 2 * p, schedule, first_trainable, schedule_traits(schedule).least_virtual_stages);
      if (first_trainable > 0) phase.recompute = RecomputeMode::stage;
      if (why_not_recorded(phase, /*dropout=*/0)) continue;
      check_gradients(job, phase, DType::kFloat64, 11);
      check_gradients(job, phase, DType::kFloat64, 3);
    }
  }
}
RANK_TEST(IterationRecord, GradientsOnOneRankEqualOneProcess, 1) { gradients_of_each_schedule(self, 1, 1); }
RANK_TEST(IterationRecord, GradientsOnTwoRanksEqualOneProcess, 2) { gradients_of_each_schedule(self, 2, 1); }
RANK_TEST(IterationRecord, GradientsOnTwoRanksWithReplicasEqualOneProcess, 4) {
  gradients_of_each_schedule(self, 2, 2);
}

RANK_TEST(IterationRecord, GradientsOfEveryHeadEqualOneProcess, 2) {
  Job job(self);
  job.cuda_graphs = true;
  for (const TransformerConfig& config : small_configs()) {
    job.train_now(config);
    check_gradients(job, small_phase(2, 1, 3, "1F1B", 0), DType::kFloat64, 11);
  }
}

struct Steps {
  std::vector<double> losses;
  std::map<int, at::Tensor> weights;
};

/// Of mini-batches a and b, which have the same lengths, and c.
Steps train(Job& job, bool cuda_graphs, const Phase& phase) {
  job.cuda_graphs = cuda_graphs;
  const std::unique_ptr<Samples> data = small_samples(job.config, 2 * kLengthsRepeatAfter);
  std::vector<int> order(2 * kLengthsRepeatAfter);
  std::iota(order.begin(), order.end(), 0);
  const std::vector<int> backwards(order.rbegin(), order.rend());
  const MiniBatch a = mini_batch(*data, order, kLengthsRepeatAfter, 0),
                  b = mini_batch(*data, order, kLengthsRepeatAfter, 1),
                  c = mini_batch(*data, backwards, kLengthsRepeatAfter, 0);
  RankSession session = job.session(*data, Optimizer::kSgd, DType::kFloat64);
  session.start(phase, 0, [&](int layer, LayerState& state, std::map<int, OffloadedMoments>&) {
    randomise_layer(job.config, layer, kSeed, state);
  });
  Steps steps;
  const std::vector<const MiniBatch*> batches{&a, &b, &a, &b, &c, &b, &a, &b};
  for (std::size_t i = 0; i < batches.size(); ++i) {
    Trace trace;
    const UpdateRule rule{.optimizer = Optimizer::kSgd,
                          .learning_rate = 0.1 / static_cast<double>(1 + i % 3),
                          .step = static_cast<std::int64_t>(i) + 1};
    const MiniBatch* const next = i + 1 < batches.size() ? batches[i + 1] : nullptr;
    const IterationResult result = session.runner()->run_iteration(*batches[i], next, static_cast<int>(i),
                                                                   {.rule = rule, .gradient_clip = 1}, trace);
    steps.losses.push_back(result.loss);
  }
  for (const auto& [layer, state] : session.layers()) steps.weights[layer] = state.weights.to(at::kCPU, at::kDouble);
  return steps;
}

/// Layers freeze up to the middle of the first stage.
void steps_as_without(const RankEnvironment& self, int p, int d, const std::string& schedule, int virtual_stages) {
  Job job(self);
  for (const TransformerConfig& config : {small_config(), small_config(Family::vit, Task::image_classification),
                                          small_config(Family::gpt2, Task::causal_language_modeling)}) {
    job.train_now(config);
    for (const int first_trainable : {0, 1}) {
      const Phase phase = small_phase(p, d, 2, schedule, first_trainable, virtual_stages);
      const Steps expected = train(job, false, phase), actual = train(job, true, phase);
      for (std::size_t i = 0; i < expected.losses.size(); ++i)
        CHECK_RANK(std::abs(actual.losses[i] - expected.losses[i]) <= 1e-12, name_of(config) + " " + std::to_string(i));
      for (const auto& [layer, weights] : expected.weights)
        CHECK_RANK(l2(actual.weights.at(layer) - weights) <= 1e-12 * l2(weights),
                   name_of(config) + " " + std::to_string(layer));
    }
  }
}
RANK_TEST(IterationRecord, StepsOfAPipelineAreThoseWithout, 2) { steps_as_without(self, 2, 1, "1F1B", 1); }
RANK_TEST(IterationRecord, StepsOfReplicasAreThoseWithout, 2) { steps_as_without(self, 1, 2, "1F1B", 1); }
RANK_TEST(IterationRecord, StepsOfAVWithReplicasAreThoseWithout, 4) {
  steps_as_without(self, 2, 2, "ZBVZeroBubble", 2);
}

}  // namespace
}  // namespace frostpipe::test
