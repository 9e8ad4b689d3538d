#include "serving/planner/make_serving_plan.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "serving/planner/device_classes.h"
#include "serving/planner/pipeline_candidates.h"
#include "tests/plan/examples.h"
#include "tests/serving/planner/two_devices.h"

namespace frostpipe {
namespace {

using examples::kMillisecond;
using examples::message_of;
using examples::model_of_two_blocks;
using examples::planned;
using examples::two_devices;
using testing::HasSubstr;

std::string reason(ServingMethod method, const ServingProblem& problem) {
  const auto result = make_serving_plan(method, problem);
  return std::holds_alternative<Infeasible>(result) ? std::get<Infeasible>(result).reason : "feasible";
}

// Alone the fast device serves 125 requests/s (8 ms); with the slow one for the first block both serve 250 (4 ms each,
// 9 ms of latency with the transfer).
TEST(MakeServingPlan, PutsTheWeakClassWhereItIsLeastBad) {
  const auto plan = planned(ServingMethod::ppipe, two_devices());
  EXPECT_DOUBLE_EQ(plan.objective_value, 250);
  ASSERT_EQ(plan.models[0].pipelines.size(), 1u);
  const auto& [first, second] =
      std::tie(plan.models[0].pipelines[0].partitions[0], plan.models[0].pipelines[0].partitions[1]);
  EXPECT_EQ(first.device_class, "slow");
  EXPECT_EQ(second.device_class, "fast");
  EXPECT_EQ(second.transfer_ns, kMillisecond);
  EXPECT_DOUBLE_EQ(planned(ServingMethod::ppipe_np, two_devices()).objective_value, 125);
  EXPECT_DOUBLE_EQ(planned(ServingMethod::ppipe_dart, two_devices()).objective_value, 250);
}

// Two fast devices serve 2 / 8 ms. With two heads that share the first block they serve 2 / (4 + 2 x 4) ms.
TEST(MakeServingPlan, ComputesASharedPrefixOnceForAllHeads) {
  auto problem = two_devices();
  problem.classes = {{.name = "fast", .count = 2}};
  problem.max_partitions = 1;
  problem.margins.objective_fraction = 0;
  EXPECT_DOUBLE_EQ(planned(ServingMethod::ppipe, problem).objective_value, 250);
  auto& model = problem.models[0];
  model.profile = with_heads(model.profile, 1, 2);
  model.shared_prefix = {.layers = 1, .heads = 2};
  for (const auto method : {ServingMethod::ppipe, ServingMethod::ppipe_np}) {
    const auto plan = planned(method, problem);
    EXPECT_DOUBLE_EQ(plan.objective_value, 2 / 12e-3);
    EXPECT_EQ(plan.models[0].shared_prefix, model.shared_prefix);
  }
}

// Ten slow devices per server leave each a tenth of the network card: 100 requests/s, while the fast one alone serves
// 125.
TEST(MakeServingPlan, KeepsToTheServersNetworkCards) {
  auto problem = two_devices();
  problem.classes[1].devices_per_server = 10;
  const auto plan = planned(ServingMethod::ppipe, problem);
  EXPECT_DOUBLE_EQ(plan.objective_value, 125);
}

// 100 requests/s need only the fast device (3 per hour); a pair would cost 4.
TEST(MakeServingPlan, SeeksTheCheapestDevices) {
  auto problem = two_devices();
  problem.objective = ServingObjective::cost;
  problem.models[0].required_requests_per_second = 100;
  EXPECT_NEAR(planned(ServingMethod::ppipe, problem).objective_value, 3, 1e-9);
  problem.models[0].required_requests_per_second = 200;
  EXPECT_NEAR(planned(ServingMethod::ppipe, problem).objective_value, 4, 1e-9);
  problem.models[0].required_requests_per_second = 300;
  EXPECT_THAT(reason(ServingMethod::ppipe, problem), HasSubstr("cannot serve the required requests per second"));
  problem.classes[1].price_per_hour.reset();
  EXPECT_THAT(message_of([&] { make_serving_plan(ServingMethod::ppipe, problem); }),
              HasSubstr("class slow: has no price"));
}

// Two requests take 10 ms, and 1.3 / 200 s to build, together 16.5 of the 20.4 ms that the margin leaves of 34.
TEST(MakeServingPlan, CountsTheBuildingOfBatches) {
  auto problem = two_devices();
  problem.classes.pop_back();
  problem.models[0].profile.times[0].forward_ns = {{4 * kMillisecond, 5 * kMillisecond},
                                                   {4 * kMillisecond, 5 * kMillisecond}};
  problem.models[0].objective_ns = 34 * kMillisecond;
  const auto plan = planned(ServingMethod::ppipe, problem);
  EXPECT_DOUBLE_EQ(plan.models[0].building_requests_per_second, 200);  // batches of 2, built in no time
  EXPECT_EQ(plan.models[0].pipelines[0].batch_size, 2);
  EXPECT_EQ(plan.models[0].pipelines[0].batch_building_ns, 6'500'000);  // 1.3 / 200
  problem.models[0].building_requests_per_second = 100;
  EXPECT_EQ(planned(ServingMethod::ppipe, problem).models[0].pipelines[0].batch_size, 1);  // 13 ms are too long
}

TEST(MakeServingPlan, SaysInASentenceWhatCannotBe) {
  auto problem = two_devices();
  problem.models[0].objective_ns = 13 * kMillisecond;  // 7.8 ms are left
  EXPECT_THAT(reason(ServingMethod::ppipe, problem), HasSubstr("model net: a single request takes at least 8.0"));
  problem = two_devices();
  problem.memory_limit_bytes = {150, 150};
  EXPECT_THAT(reason(ServingMethod::ppipe_np, problem), HasSubstr("model net: the weights and working memory"));
  EXPECT_DOUBLE_EQ(planned(ServingMethod::ppipe, problem).objective_value, 250);
  problem = two_devices();
  problem.classes[1].count = 0;
  EXPECT_EQ(message_of([&] { make_serving_plan(ServingMethod::ppipe, problem); }),
            "class slow: must have at least one device, is 0");
  problem = two_devices();
  problem.classes[1].name = "quick";
  EXPECT_EQ(message_of([&] { make_serving_plan(ServingMethod::ppipe, problem); }),
            "class \"quick\": no profile was measured on it, only on \"fast\", \"slow\"");
  problem = two_devices();
  problem.models.push_back(model_of_two_blocks());
  problem.models[1].name = "other";
  problem.models.push_back(model_of_two_blocks());
  problem.models[2].name = "third";
  EXPECT_THAT(reason(ServingMethod::ppipe, problem), HasSubstr("1 fast and 1 slow are too few to serve 3 models"));
}

// Neither device has memory for both blocks, so there is no plan without pipelines. With a pipeline, and without
// building time, batches of two (5 ms each) give 400 requests/s; so they take 1.3 / 400 s to build.
TEST(MakeServingPlan, BuildsBatchesByItsOwnThroughputWhereOneDeviceIsTooFew) {
  auto problem = two_devices();
  problem.memory_limit_bytes = {150, 150};
  problem.models[0].objective_ns = 34 * kMillisecond;
  problem.models[0].profile.times[0].forward_ns = {{4 * kMillisecond, 5 * kMillisecond},
                                                   {4 * kMillisecond, 5 * kMillisecond}};
  problem.models[0].profile.times[1].forward_ns = {{4 * kMillisecond, 5 * kMillisecond},
                                                   {20 * kMillisecond, 25 * kMillisecond}};
  const auto plan = planned(ServingMethod::ppipe, problem);
  EXPECT_NEAR(plan.models[0].building_requests_per_second, 400, 1e-6);
  EXPECT_EQ(plan.models[0].pipelines[0].batch_size, 2);
  EXPECT_EQ(plan.models[0].pipelines[0].batch_building_ns, 3'250'000);
}

TEST(MakeServingPlan, RefusesAModelThatWasMeasuredOnNoClass) {
  auto problem = two_devices();
  problem.models.push_back(model_of_two_blocks());
  problem.models[1].name = "other";
  problem.models[1].profile.times = {
      {.device_type = "third", .forward_ns = {{1}, {1}}},
      {.device_type = "fast", .share = 8, .forward_ns = {{1}, {1}}},
  };
  EXPECT_EQ(message_of([&] { make_serving_plan(ServingMethod::ppipe, problem); }),
            "model \"other\": no profile of it was measured on a device of the cluster (\"fast\", \"slow\"), or on a "
            "part down to 1/4 of one, only on \"third\", \"1/8 fast\"");
  problem.models[1].profile.times[1].share = 2;
  EXPECT_THAT(reason(ServingMethod::ppipe_np, problem),
              HasSubstr("model other: no profile of it was measured on whole devices of the cluster's classes"));
}

TEST(MakeServingPlan, RefusesNumbersThatNoFileHolds) {
  auto problem = two_devices();
  problem.models[0].weight = 1e-11;
  EXPECT_EQ(message_of([&] { make_serving_plan(ServingMethod::ppipe, problem); }),
            "model net: weight: must be >= 1e-06 and <= 1e+06, is 1e-11");
  problem = two_devices();
  problem.models[0].objective_ns = 2'000'000 * kMillisecond;
  EXPECT_THAT(message_of([&] { make_serving_plan(ServingMethod::ppipe, problem); }),
              HasSubstr("model net: latency objective: must be > 0 and <= 16.7 min, is 33.3 min"));
}

// Each of the two fast devices has a slow one before it: 250 requests/s per pair. Three of the five slow ones are left;
// a whole model takes 24 ms on them, which is too long for 20 ms, but not for 50.
TEST(DartR, PairsDevicesAndServesWholeModelsOnTheRest) {
  auto problem = two_devices();
  problem.classes[0].count = 2;
  problem.classes[1].count = 5;
  const auto pairs = planned(ServingMethod::ppipe_dart, problem);
  EXPECT_DOUBLE_EQ(pairs.objective_value, 500);
  ASSERT_EQ(pairs.models[0].pipelines.size(), 1u);
  EXPECT_EQ(pairs.models[0].pipelines[0].partitions[0].num_virtual_devices, 2);
  EXPECT_EQ(pairs.models[0].pipelines[0].partitions[1].num_virtual_devices, 2);
  EXPECT_EQ(pairs.objective_bound, std::nullopt);
  problem.models[0].objective_ns = 50 * kMillisecond;
  const auto both = planned(ServingMethod::ppipe_dart, problem);
  EXPECT_DOUBLE_EQ(both.objective_value, 500 + 3 / 0.024);
  ASSERT_EQ(both.models[0].pipelines.size(), 2u);
  EXPECT_EQ(both.models[0].pipelines[1].partitions[0].device_class, "slow");
  EXPECT_EQ(both.models[0].pipelines[1].partitions[0].num_virtual_devices, 3);
}

// Each model gets one fast device and two slow ones. The first block takes 8 ms on a slow one, so it needs two of them
// to keep the fast one busy (250 requests/s); a pair serves 125, and the remaining slow one serves nothing in time.
TEST(DartR, IsWorseThanPPipeWhereTheClassesAreNotWantedOneToOne) {
  auto problem = two_devices();
  problem.classes[0].count = 2;
  problem.classes[1].count = 4;
  problem.models[0].objective_ns = 40 * kMillisecond;
  problem.models[0].profile.times[1].forward_ns = {{8 * kMillisecond}, {100 * kMillisecond}};
  problem.models.push_back(problem.models[0]);
  problem.models[1].name = "other";
  EXPECT_DOUBLE_EQ(planned(ServingMethod::ppipe_dart, problem).objective_value, 125);
  EXPECT_NEAR(planned(ServingMethod::ppipe, problem).objective_value, 250, 250 * 2e-5);
}

/// Returns whether two neighbouring pools of a candidate have the same class.
bool has_neighbours_of_one_class(const CandidatePipeline& candidate) {
  return std::ranges::adjacent_find(candidate.pools, {}, &CandidatePool::device_class) != candidate.pools.end();
}

TEST(PipelineCandidates, OfThreePoolsChangeClassFromPoolToPoolUnlessMemoryForbidsIt) {
  auto problem = two_devices();
  problem.models[0].objective_ns = 1000 * kMillisecond;
  const auto candidates = [&] { return pipeline_candidates(problem, problem.models[0], 0); };
  EXPECT_TRUE(std::ranges::any_of(candidates(), has_neighbours_of_one_class));
  problem.max_partitions = 3;
  EXPECT_FALSE(candidates().empty());
  EXPECT_TRUE(std::ranges::none_of(candidates(), has_neighbours_of_one_class));
  problem.memory_limit_bytes = {150, 150};
  EXPECT_TRUE(std::ranges::any_of(candidates(), has_neighbours_of_one_class));
}

TEST(MakeServingPlan, TakesThreeClassesAndThreePartitions) {
  auto problem = two_devices();
  problem.max_partitions = 3;
  problem.classes.push_back({.name = "third", .count = 1, .bandwidth_bytes_per_second = 1'000'000});
  auto& profile = problem.models[0].profile;
  profile.block_ends = {1, 2, 3};
  profile.weight_bytes = {1, 1, 1};
  profile.cut_bytes = {1, 1};
  profile.times = {};
  const std::vector<std::pair<std::string, int>> best_blocks = {{"fast", 0}, {"slow", 1}, {"third", 2}};
  for (const auto& [type, best_block] : best_blocks) {
    BlockTimes times{.device_type = type};
    for (int block = 0; block < 3; ++block) times.forward_ns.push_back({(block == best_block ? 2 : 10) * kMillisecond});
    profile.times.push_back(times);
  }
  const auto plan = planned(ServingMethod::ppipe, problem);  // each class has a block of 2 ms
  EXPECT_DOUBLE_EQ(plan.objective_value, 500);
  EXPECT_EQ(plan.models[0].pipelines[0].partitions.size(), 3u);
}

TEST(DeviceClasses, AreTheClustersDevicesByType) {
  Cluster cluster;
  cluster.devices = {{.type = "L4", .node = 0, .memory_limit_bytes = 10},
                     {.type = "L4", .node = 0},
                     {.type = "L4", .node = 1, .memory_limit_bytes = 8},
                     {.type = "P4", .node = 2}};
  cluster.inter_node.point_to_point.bandwidth_bytes_per_second = 5;
  cluster.price_per_hour = {{"P4", 0.5}};
  const auto classes = device_classes_of(cluster);
  EXPECT_EQ(classes, (std::vector<DeviceClass>{
                         {.name = "L4", .count = 3, .devices_per_server = 2, .bandwidth_bytes_per_second = 5},
                         {.name = "P4", .count = 1, .bandwidth_bytes_per_second = 5, .price_per_hour = 0.5}}));
  EXPECT_EQ(memory_limits_of(cluster, classes), (std::vector<std::optional<Bytes>>{8, std::nullopt}));
  EXPECT_EQ(cluster_from_json(to_json(cluster), "cluster.json"), cluster);
}

}  // namespace
}  // namespace frostpipe
