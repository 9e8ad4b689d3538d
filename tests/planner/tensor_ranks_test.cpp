// Tensor ranks in plans: whose memory limits hold, and which devices they may be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "planner/auto_plan.h"
#include "planner/embedding_freeze.h"
#include "planner/make_plan.h"
#include "planner/published/timely_freeze.h"
#include "tests/planner/two_blocks.h"

namespace frostpipe {
namespace {

using test::free_cluster;
using test::options_for;
using test::reason_of;
using test::two_blocks;
using testing::HasSubstr;

/// The profile of two_blocks(), measured with two tensor ranks.
Profile two_blocks_on_pairs() {
  Profile profile = two_blocks();
  for (Measurement& one : profile.measurements) one.key.tensor_parallel_size = 2;
  return profile;
}

/// A static plan on four equal devices, in pairs of tensor ranks.
struct PairsOfTensorRanks {
  PairsOfTensorRanks() { options.tensor_parallel_size = 2; }
  std::string reason() const { return reason_of(make_plan({profile, cluster, options})); }

  Profile profile = two_blocks_on_pairs();
  Cluster cluster = free_cluster(4);
  PlanOptions options = options_for(PlanMethod::static_pipeline);
};

// Tensor rank 1 has too little memory; rank 0 with the same layers has enough.
TEST(MakePlan, FitsTheLimitOfEveryTensorRank) {
  PairsOfTensorRanks pairs;
  ASSERT_EQ(pairs.reason(), "feasible");
  pairs.cluster.devices[1].memory_limit_bytes = 1;
  EXPECT_THAT(pairs.reason(), HasSubstr("rank 1 has 1 B"));
  pairs.options.virtual_stages = 2;
  pairs.options.schedule = "Interleaved1F1B";  // several stages per rank use another partitioner
  EXPECT_THAT(pairs.reason(), HasSubstr("rank 1 has 1 B"));
}

// Only measurements with split tokens are used for plans with split tokens.
TEST(MakePlan, SplitsTokensWhereThatWasMeasuredAndAskedFor) {
  PairsOfTensorRanks pairs;
  pairs.options.sequence_parallel = true;
  try {
    pairs.reason();
    FAIL() << "it was not measured";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("tensor-parallel size 2 with sequence parallelism: was not measured"));
  }
  for (Measurement& one : pairs.profile.measurements) one.key.sequence_parallel = true;
  const PlanResult made = make_plan({pairs.profile, pairs.cluster, pairs.options});
  EXPECT_TRUE(std::get<TrainingPlan>(made).phases.front().layout.sequence_parallel);
  pairs.options.sequence_parallel = false;
  EXPECT_THROW(pairs.reason(), InvalidInput);
}

// Methods that choose the tensor-parallel size take one that was measured as asked: here 4 with split tokens. 2 would
// be faster and is Megatron's choice, but was measured without.
TEST(MakePlan, ChoosesAmongTheTensorRanksThatWereMeasuredAsAsked) {
  PairsOfTensorRanks pairs;
  std::vector<Measurement>& all = pairs.profile.measurements;
  std::vector<Measurement> split = all;
  for (Measurement& one : split) {
    one.key.tensor_parallel_size = 4;
    one.key.sequence_parallel = true;
  }
  for (Measurement& one : all) one.cost.forward_ns = one.cost.input_gradient_ns = one.cost.weight_gradient_ns = 1;
  all.insert(all.end(), split.begin(), split.end());
  std::ranges::sort(all, {}, &Measurement::key);
  pairs.options = options_for(PlanMethod::ptd_p);
  pairs.options.any_tensor_parallel_size = true;
  pairs.options.sequence_parallel = true;
  const PlanResult published = make_plan({pairs.profile, pairs.cluster, pairs.options});
  EXPECT_EQ(std::get<TrainingPlan>(published).phases.front().layout.tensor_parallel_size, 4);
  const auto found = make_auto_plan({pairs.profile, pairs.cluster, pairs.options});
  EXPECT_EQ(std::get<AutoPlan>(found).plan.phases.front().layout.tensor_parallel_size, 4);
}

// The error names the sizes that were asked for but not measured, and what to do. No pipeline length was given.
TEST(AutoPlan, SaysThatTheAskedTensorRanksWereNotMeasured) {
  PairsOfTensorRanks pairs;
  pairs.options.any_tensor_parallel_size = false;
  pairs.options.tensor_parallel_size = 4;
  const auto reason = [&] {
    return std::get<Infeasible>(make_auto_plan({pairs.profile, pairs.cluster, pairs.options})).reason;
  };
  EXPECT_EQ(reason(), "tensor-parallel size 4: was not measured, the profile has 2 (profile --tensor-parallel 1,4)");
  pairs.options.sequence_parallel = true;
  for (Measurement& one : pairs.profile.measurements) one.key.sequence_parallel = true;
  EXPECT_THAT(reason(), HasSubstr("(profile --tensor-parallel 1,4 --sequence-parallel)"));
  pairs.options.tensor_parallel_size = 2;
  pairs.options.pipeline_parallel_size = 3;
  EXPECT_EQ(reason(), "no layout of 4 devices has what is asked for (tensor-parallel size 2, pipeline length 3)");
}

// The plan that is compared has split tokens as well. Oracle: the same times without split tokens.
TEST(FreezeEmbeddingAlone, KeepsTokensSplit) {
  PairsOfTensorRanks pairs;
  const TrainingPlan whole = std::get<TrainingPlan>(make_plan({pairs.profile, pairs.cluster, pairs.options}));
  const EmbeddingFreeze expected = freeze_embedding_alone(whole, 0, pairs.profile, pairs.cluster);
  for (Measurement& one : pairs.profile.measurements) one.key.sequence_parallel = true;
  pairs.options.sequence_parallel = true;
  const TrainingPlan split = std::get<TrainingPlan>(make_plan({pairs.profile, pairs.cluster, pairs.options}));
  EXPECT_EQ(freeze_embedding_alone(split, 0, pairs.profile, pairs.cluster), expected);
  EXPECT_LT(expected.iteration_ns, expected.baseline_iteration_ns);
  const Phase &with = split.phases.front(), &without = whole.phases.front();
  EXPECT_EQ(timely_freeze_of(with, {pairs.profile, pairs.cluster, pairs.options}, 0.5).makespan_ns,
            timely_freeze_of(without, {two_blocks_on_pairs(), pairs.cluster, pairs.options}, 0.5).makespan_ns);
}

// Oracle: nodes by hand. Ranks 0 1 | 2 3 are tensor ranks, then 0 2 | 1 3.
TEST(MakePlan, NamesTensorRanksThatAreOnDifferentNodes) {
  PairsOfTensorRanks pairs;
  pairs.cluster.devices[2].node = pairs.cluster.devices[3].node = 1;
  EXPECT_EQ(pairs.reason(), "feasible");
  pairs.options.placement = {0, 2, 1, 3};
  EXPECT_EQ(pairs.reason(),
            "t = 2: tensor ranks that split layers would be on different nodes (rank 0 on 0, rank 2 on 1); order "
            "the ranks so that devices of a node and type are neighbours");
  pairs.options.placement.clear();
  pairs.cluster.devices[2].node = 0;
  EXPECT_THAT(pairs.reason(), HasSubstr("(rank 2 on 0, rank 3 on 1); try a size that divides the devices of every"));
}

/// Copies all measurements for another type of device.
void measure_on(Profile& profile, const std::string& type) {
  const std::size_t measured = profile.measurements.size(), updated = profile.updates.size();
  for (std::size_t i = 0; i < measured; ++i) {
    profile.measurements.push_back(profile.measurements[i]);
    profile.measurements.back().key.device_type = type;
  }
  for (std::size_t i = 0; i < updated; ++i) {
    profile.updates.push_back(profile.updates[i]);
    profile.updates.back().device_type = type;
  }
  std::sort(profile.measurements.begin(), profile.measurements.end(),
            [](const Measurement& a, const Measurement& b) { return a.key < b.key; });
}

// A group would be priced as its first device, so mixed types must be refused. Oracle: types by hand.
TEST(MakePlan, NamesTensorRanksThatAreOfDifferentTypes) {
  PairsOfTensorRanks pairs;
  measure_on(pairs.profile, "other");
  pairs.options.pipeline_parallel_size = 2;
  pairs.cluster.devices[2].type = pairs.cluster.devices[3].type = "other";
  EXPECT_EQ(pairs.reason(), "feasible");
  std::swap(pairs.cluster.devices[1].type, pairs.cluster.devices[2].type);
  EXPECT_EQ(pairs.reason(), "feasible") << "0 2 and 1 3 are alike";
  pairs.cluster.devices[0].type = "other";
  EXPECT_THAT(pairs.reason(), HasSubstr("(rank 2 on cpu, rank 3 on other); try a size that divides"));
  pairs.options.method = PlanMethod::automatic;
  pairs.options.any_tensor_parallel_size = false;
  pairs.cluster.devices[0].type = "cpu";
  pairs.options.pipeline_parallel_size = 1;  // both types together form its only stage
  const auto made = make_auto_plan({pairs.profile, pairs.cluster, pairs.options});
  ASSERT_TRUE(std::holds_alternative<Infeasible>(made));
  EXPECT_THAT(std::get<Infeasible>(made).reason, HasSubstr("(rank 0 on cpu, rank 1 on other)"));
}

// Oracle: two alternating types, of which only 0 2 and 1 3 are alike; then nodes that separate these.
TEST(AutoPlan, GivesTensorRanksDevicesOfOneType) {
  Profile profile = two_blocks();
  for (Measurement& one : profile.measurements) one.key.tensor_parallel_size = 2;
  measure_on(profile, "other");
  Cluster cluster = free_cluster(4);
  cluster.devices[1].type = cluster.devices[3].type = "other";
  PlanOptions options = options_for(PlanMethod::automatic);
  options.pipeline_parallel_size = options.tensor_parallel_size = 2;
  options.any_tensor_parallel_size = false;
  const auto made = make_auto_plan({profile, cluster, options});
  ASSERT_TRUE(std::holds_alternative<AutoPlan>(made)) << std::get<Infeasible>(made).reason;
  EXPECT_THAT(std::get<AutoPlan>(made).plan.phases.front().layout.placement,
              testing::AnyOf(testing::ElementsAre(0, 2, 1, 3), testing::ElementsAre(1, 3, 0, 2)));
  cluster.devices[2].node = cluster.devices[3].node = 1;
  const auto none = make_auto_plan({profile, cluster, options});
  ASSERT_TRUE(std::holds_alternative<Infeasible>(none));
  EXPECT_THAT(std::get<Infeasible>(none).reason, HasSubstr("; try a size that divides the devices of every node and"));
}

}  // namespace
}  // namespace frostpipe
