// Oracle: brute force over every layout, partition, schedule and number of micro-batches of random small models.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "base/error.h"
#include "planner/auto_plan.h"
#include "planner/make_plan.h"
#include "planner/search/placement.h"
#include "simulator/simulate.h"
#include "tests/planner/small_problems.h"
#include "tests/support/random_phase.h"

namespace frostpipe {
namespace {

/// Returns the shortest iteration of all phases that make_auto_plan may choose, without recomputation, which only takes
/// time here.
Nanoseconds shortest_of_all(const PlanningProblem& problem) {
  const auto& [profile, cluster, options] = problem;
  Nanoseconds best = std::numeric_limits<Nanoseconds>::max();
  const int devices = static_cast<int>(cluster.devices.size()), layers = static_cast<int>(profile.model.layers.size());
  for (int p = 1; p <= std::min(devices, layers); ++p) {
    if (devices % p != 0) continue;
    Phase phase{.tokens = test::kSyntheticTokens};
    phase.layout = {.pipeline_parallel_size = p, .data_parallel_size = devices / p};
    for (const std::vector<int>& placement : placements_of(cluster, options, 1, p)) {
      phase.layout.placement = placement;
      for (const PlannedSchedule& schedule : schedules_for(problem, p)) {
        phase.schedule = schedule.name;
        phase.virtual_stages = schedule.virtual_stages;
        if (p * schedule.virtual_stages > layers) continue;
        const std::vector<Partition> partitions = test::all_partitions(layers, p * schedule.virtual_stages);
        for (int m = 1; m * devices / p <= options.global_batch_size; ++m) {
          phase.num_micro_batches = m;
          try {
            for (const Partition& partition : partitions) {
              phase.partition = partition;
              best = std::min(best, simulated_iteration_ns(phase, {.global_batch_size = options.global_batch_size},
                                                           profile, cluster));
            }
          } catch (const InvalidInput&) {  // not with so many micro-batches
          }
        }
      }
    }
  }
  return best;
}

// Oracle: brute force over all that auto looks at, with several stages per rank and replicas on unequal devices too. By
// hand: the fastest devices alone would need `of_fastest` (all work divided by their number).
TEST(AutoPlan, BoundOfUnequalDevicesIsBelowAllPlansAndAboveThatOfFastestDevicesAlone) {
  std::mt19937 random(31);
  int above = 0, exact = 0;
  constexpr int kRounds = 60;
  for (int round = 0; round < kRounds; ++round) {
    Profile profile = test::random_profile(random, 1 + static_cast<int>(random() % 2));
    for (Measurement& one : profile.measurements)
      one.cost.split_backward = SplitBackward{one.cost.input_gradient_ns, one.cost.weight_gradient_ns, 100};
    test::RandomCase unequal{
        .profile = profile, .cluster = test::free_cluster(2 + round % 3), .options = {}, .phase = {}};
    test::make_devices_unequal(unequal, random);
    unequal.cluster.intra_node.point_to_point.latency_ns = static_cast<Nanoseconds>(random() % 2000);
    PlanOptions options = test::options_for(4 + static_cast<int>(random() % 5));
    options.virtual_stages = 0;
    const PlanningProblem problem{unequal.profile, unequal.cluster, options};
    const AutoPlan made = std::get<AutoPlan>(make_auto_plan(problem));
    const Nanoseconds best = shortest_of_all(problem), found = made.plan.phases.front().predicted.iteration_ns;
    EXPECT_LE(made.lower_bound_ns, best) << round;
    EXPECT_LE(iteration_lower_bound_ns(problem), best) << round;
    EXPECT_GE(found, best) << round;
    exact += found == best;
    std::map<int, Nanoseconds> least;  // by layer, of one sample
    for (const Measurement& one : unequal.profile.measurements) {
      if (one.key.micro_batch_size != 1) continue;
      const Nanoseconds all = one.cost.forward_ns + one.cost.weight_gradient_ns +
                              (one.key.layer > 0 ? one.cost.input_gradient_ns : Nanoseconds{0});
      const auto [known, is_new] = least.try_emplace(one.key.layer, all);
      if (!is_new) known->second = std::min(known->second, all);
    }
    Nanoseconds of_fastest = 0;
    for (const auto& [layer, time] : least) of_fastest += time * options.global_batch_size;
    of_fastest /= static_cast<Nanoseconds>(unequal.cluster.devices.size());
    above += iteration_lower_bound_ns(problem) > of_fastest * 11 / 10;
  }
  EXPECT_GT(above, kRounds / 2);
  EXPECT_GT(exact, kRounds * 9 / 10);
}

TEST(IterationLowerBound, IsBelowThePlanOfEveryMethodByEveryScheduleThatItTakes) {
  std::mt19937 random(7);
  std::map<std::string, int> plans;  // by schedule
  for (int round = 0; round < 6; ++round) {
    Profile profile = test::random_profile(random, 2);
    profile.model.is_causal = true;
    const Cluster cluster = test::free_cluster(2 + 2 * (round % 2));
    for (const PlanMethod method : plan_methods()) {
      for (const std::string& schedule : schedule_names()) {
        PlanOptions options = test::options_for(8);
        options.method = method;
        options.schedule = schedule;
        options.virtual_stages = 0;
        const PlanningProblem problem{profile, cluster, options};
        try {
          const PlanResult made = make_plan(problem);
          if (std::holds_alternative<Infeasible>(made)) continue;
          const Phase& first = std::get<TrainingPlan>(made).phases.front();
          EXPECT_GE(first.predicted.iteration_ns, iteration_lower_bound_ns(problem)) << to_string(method) << schedule;
          ++plans[first.schedule];
        } catch (const InvalidInput&) {  // the method does not allow this schedule
        }
      }
    }
  }
  for (const std::string& schedule : schedule_names()) EXPECT_GE(plans[schedule], 6) << schedule;
}

// One rank has no memory for both stages. With two samples, forwards of the next iteration fill the bubble.
TEST(IterationLowerBound, IsOfTheScheduleThatIsAskedForToo) {
  const Profile profile = test::synthetic_profile(  // 9600 bytes, and 6000 for half of it with 2BW
      2, {{.forward_ns = 100, .input_gradient_ns = 1, .weight_gradient_ns = 1, .parameter_count = 100}});
  const Cluster cluster = test::free_cluster(2, 9000);
  PlanOptions options = test::options_for(2);
  options.method = PlanMethod::static_pipeline;
  const Nanoseconds bound_of_any = iteration_lower_bound_ns({profile, cluster, options});
  options.schedule = "PipeDream-2BW";
  const PlanningProblem problem{profile, cluster, options};
  const TrainingPlan plan = std::get<TrainingPlan>(make_plan(problem));
  EXPECT_LT(plan.phases.front().predicted.iteration_ns, bound_of_any);
  EXPECT_LE(iteration_lower_bound_ns(problem), plan.phases.front().predicted.iteration_ns);
}

}  // namespace
}  // namespace frostpipe
