// Iterations by CUDA graphs in every layout and schedule that allows it. Only a GPU has graphs
// (RanksOnDevice.CudaGraphs); on the CPU the same iterations run eagerly. Oracle for gradients: one process without
// stages; for steps: the same run without graphs.
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "executor/runtime/iteration_graphs.h"
#include "plan/schedule_rules.h"
#include "tests/executor/ranks.h"
#include "tests/executor/runtime/check_gradients.h"
#include "tests/executor/runtime/job.h"
#include "tests/executor/runtime/repeated_steps.h"
#include "tests/executor/small_model.h"

namespace frostpipe::test {
namespace {

/// With the schedule's least number of stages per rank, including wholly frozen ones, which send to a stage of their
/// rank or to another rank, and with empty micro-batches.
void gradients_of_each_schedule(const RankEnvironment& self, int p, int d) {
  Job job(self);
  job.cuda_graphs = true;
  for (const std::string& schedule : schedule_names()) {
    for (const int first_trainable : {0, 5}) {
      Phase phase = small_phase(p, d, 2 * p, schedule, first_trainable, schedule_traits(schedule).least_virtual_stages);
      if (first_trainable > 0) phase.recompute = RecomputeMode::stage;
      if (why_not_captured(phase, /*dropout=*/0)) continue;
      check_gradients(job, phase, DType::kFloat64, 11);
      check_gradients(job, phase, DType::kFloat64, 3);
    }
  }
}
RANK_TEST(IterationGraphs, GradientsOnOneRankEqualOneProcess, 1) { gradients_of_each_schedule(self, 1, 1); }
RANK_TEST(IterationGraphs, GradientsOnTwoRanksEqualOneProcess, 2) { gradients_of_each_schedule(self, 2, 1); }
RANK_TEST(IterationGraphs, GradientsOnTwoRanksWithReplicasEqualOneProcess, 4) {
  gradients_of_each_schedule(self, 2, 2);
}

RANK_TEST(IterationGraphs, GradientsOfEveryHeadEqualOneProcess, 2) {
  Job job(self);
  job.cuda_graphs = true;
  for (const TransformerConfig& config : small_configs()) {
    job.train_now(config);
    check_gradients(job, small_phase(2, 1, 3, "1F1B", 0), DType::kFloat64, 11);
  }
}

/// The layers up to the middle of the first stage are frozen.
void steps_as_without(const RankEnvironment& self, int p, int d, const std::string& schedule, int virtual_stages) {
  Job job(self);
  for (const TransformerConfig& config : {small_config(), small_config(Family::vit, Task::image_classification),
                                          small_config(Family::gpt2, Task::causal_language_modeling)}) {
    job.train_now(config);
    for (const int first_trainable : {0, 1}) {
      const Phase phase = small_phase(p, d, 2, schedule, first_trainable, virtual_stages);
      const Steps expected = repeated_steps(job, phase, /*cuda_graphs=*/false, {}),
                  actual = repeated_steps(job, phase, /*cuda_graphs=*/true, {});
      for (std::size_t i = 0; i < expected.losses.size(); ++i)
        CHECK_RANK(std::abs(actual.losses[i] - expected.losses[i]) <= 1e-12, name_of(config) + " " + std::to_string(i));
      for (const auto& [layer, weights] : expected.weights)
        CHECK_RANK(l2(actual.weights.at(layer) - weights) <= 1e-12 * l2(weights),
                   name_of(config) + " " + std::to_string(layer));
    }
  }
}
RANK_TEST(IterationGraphs, StepsOfAPipelineAreThoseWithout, 2) { steps_as_without(self, 2, 1, "1F1B", 1); }
RANK_TEST(IterationGraphs, StepsOfReplicasAreThoseWithout, 2) { steps_as_without(self, 1, 2, "1F1B", 1); }
RANK_TEST(IterationGraphs, StepsOfAVWithReplicasAreThoseWithout, 4) {
  steps_as_without(self, 2, 2, "ZBVZeroBubble", 2);
}

}  // namespace
}  // namespace frostpipe::test
