#include "serving/planner/unused_class.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/serving/planner/two_devices.h"

namespace frostpipe {
namespace {

using examples::kMillisecond;
using examples::model_of_two_blocks;
using examples::planned;
using examples::two_devices;
using Reasons = std::map<std::string, std::string>;

Reasons reasons(ServingMethod method, const ServingProblem& problem) {
  return why_unused(problem, planned(method, problem));
}

// On "fast" the model takes 8 ms; on "slow" it takes 24 ms, 4 ms of it for its first block; 12 ms are available.
TEST(UnusedClass, IsTooSlowOrTooSmallOrTooExpensive) {
  auto problem = two_devices();
  EXPECT_EQ(reasons(ServingMethod::ppipe, problem), Reasons());
  EXPECT_EQ(reasons(ServingMethod::ppipe_np, problem), (Reasons{{"slow", "no pipeline with it answers in time"}}));
  problem.memory_limit_bytes = {std::nullopt, 50};
  EXPECT_EQ(reasons(ServingMethod::ppipe, problem),
            (Reasons{{"slow", "what a pipeline would put on it does not fit into its memory"}}));
  problem = two_devices();
  problem.objective = ServingObjective::cost;
  problem.models[0].required_requests_per_second = 100;
  EXPECT_EQ(reasons(ServingMethod::ppipe, problem), (Reasons{{"slow", "the required rates cost less without it"}}));
}

// The whole model is on "other"; the transfer of a batch from the slow device to it would take a second.
TEST(UnusedClass, IsOfNoUseWhereOthersDoNotHoldTheRestOfItsPipelines) {
  auto problem = two_devices();
  problem.classes.push_back({.name = "other", .count = 1, .bandwidth_bytes_per_second = 1000});
  auto& times = problem.models[0].profile.times;
  times.push_back(times[0]);
  times[2].device_type = "other";
  problem.memory_limit_bytes = {50, std::nullopt, std::nullopt};
  EXPECT_EQ(reasons(ServingMethod::ppipe, problem),
            (Reasons{{"fast", "what a pipeline would put on it does not fit into its memory"},
                     {"slow", "what its pipelines would put on other classes does not fit there"}}));
}

// Two models have a fast device each, 125 requests/s; with the slow device the first would serve 250, but not the
// other.
TEST(UnusedClass, WouldNotHelpTheModelThatGetsLeast) {
  auto problem = two_devices();
  problem.classes[0].count = 2;
  problem.models.push_back(model_of_two_blocks());
  problem.models[1].name = "other";
  problem.models[1].profile.times.pop_back();
  auto plan = planned(ServingMethod::ppipe, problem);
  EXPECT_DOUBLE_EQ(plan.objective_value, 125);
  EXPECT_EQ(why_unused(problem, plan), (Reasons{{"slow", "it would not raise the least throughput per weight"}}));
  plan.objective_bound = 126;
  EXPECT_EQ(why_unused(problem, plan),
            (Reasons{{"slow", "the search, which stopped at its limit, found no use for it"}}));
}

// A pair would serve 100 requests/s (10 ms of the slow device), and the fast one alone serves 125.
TEST(UnusedClass, GetsNothingOfAHeuristic) {
  auto problem = two_devices();
  problem.models[0].objective_ns = 40 * kMillisecond;
  problem.models[0].profile.times[1].forward_ns = {{10 * kMillisecond}, {100 * kMillisecond}};
  EXPECT_EQ(reasons(ServingMethod::ppipe_dart, problem), (Reasons{{"slow", "DART-r assigns no model to it"}}));
}

}  // namespace
}  // namespace frostpipe
