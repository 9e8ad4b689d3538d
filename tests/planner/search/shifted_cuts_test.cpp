// Oracle: even shares of equal blocks, by simulation. The least bound lets early ranks work longer than late ones.
#include "planner/search/shifted_cuts.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "planner/make_plan.h"
#include "simulator/simulate.h"
#include "tests/planner/two_blocks.h"

namespace frostpipe {
namespace {

using test::free_cluster;
using test::options_for;
using test::synthetic_profile;
using test::SyntheticLayer;

TEST(ShiftedCuts, OfEqualBlocksAreNoSlowerThanEvenShares) {
  std::vector<SyntheticLayer> layers(66, {.forward_ns = 371, .input_gradient_ns = 368, .weight_gradient_ns = 249});
  layers.front() = layers.back() = {.forward_ns = 0, .input_gradient_ns = 0, .weight_gradient_ns = 0};
  const Profile profile = synthetic_profile(32, layers);
  const Cluster cluster = free_cluster(8);
  PlanOptions options = options_for(PlanMethod::static_pipeline);
  options.pipeline_parallel_size = 8;
  for (const int m : {20, 22, 23, 24, 25}) {
    for (const std::string schedule : {"1F1B", "GPipe"}) {
      options.schedule = schedule;
      options.num_micro_batches = options.global_batch_size = m;
      Phase phase = std::get<TrainingPlan>(make_plan({profile, cluster, options})).phases.front();
      const Nanoseconds planned = phase.predicted.iteration_ns;
      for (int stage = 0; stage < 8; ++stage)
        phase.partition[stage] = {stage == 0 ? 0 : 8 * stage + 1, stage == 7 ? 66 : 8 * stage + 9};
      EXPECT_LE(planned, simulated_iteration_ns(phase, {.global_batch_size = m}, profile, cluster)) << schedule << m;
    }
  }
}

}  // namespace
}  // namespace frostpipe
