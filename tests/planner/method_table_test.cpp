#include "planner/method_table.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "simulator/predict_phases.h"
#include "tests/planner/two_blocks.h"

namespace frostpipe {
namespace {

using test::free_cluster;
using test::options_for;
using test::two_blocks;

TEST(MethodTable, HasOneLineForEveryMethod) {
  ASSERT_EQ(method_table().size(), plan_methods().size());
  for (std::size_t i = 0; i < plan_methods().size(); ++i) {
    EXPECT_EQ(method_table()[i].method, plan_methods()[i]) << to_string(plan_methods()[i]);
    EXPECT_NE(method_table()[i].plan, nullptr) << to_string(plan_methods()[i]);
  }
  EXPECT_THROW(entry_of(PlanMethod::automatic), InvalidInput);
}

TEST(MethodTable, OnlyPipeTransformerAsPublishedAndTeraPipeFixOptions) {
  using enum PlanMethod;
  for (const PlanMethodEntry& entry : method_table())
    EXPECT_EQ(entry.adapted != nullptr, entry.method == pipetransformer_published || entry.method == terapipe);
  EXPECT_EQ(entry_of(terapipe).adapted({}).schedule, "TeraPipe");
  const PlanOptions options = entry_of(PlanMethod::pipetransformer_published).adapted({});
  EXPECT_EQ(options.partitioner, Partitioner::pipetransformer_greedy);
  EXPECT_EQ(options.schedule, "GPipe");
  EXPECT_FALSE(options.use_cache);
}

TEST(MethodTable, EveryMethodLeavesFixedReplicasTheirRanks) {
  for (const PlanMethod method :
       {PlanMethod::equal_split, PlanMethod::pipedream, PlanMethod::pipedream_2bw, PlanMethod::terapipe,
        PlanMethod::pipetransformer_published, PlanMethod::freeze_only}) {
    PlanOptions options = options_for(method);
    options.data_parallel_size = 2;
    const bool has_slices = method == PlanMethod::terapipe;
    const PlanResult made =
        make_plan({has_slices ? test::with_slices(two_blocks(), {}) : two_blocks(), free_cluster(4), options});
    const ParallelLayout& layout = std::get<TrainingPlan>(made).phases[0].layout;
    EXPECT_EQ(layout.data_parallel_size, 2) << to_string(method);
    EXPECT_EQ(4 % layout.pipeline_parallel_size, 0) << to_string(method);
  }
}

/// Oracle: the simulator's prediction of the same plan. Process groups are made anew as stages stop training.
TEST(MethodTable, PlansThatFreezeInPlaceCountTheirChanges) {
  const Profile profile = two_blocks();
  const Cluster cluster = free_cluster(2);
  PlanOptions options = options_for(PlanMethod::freeze_only);
  options.pipeline_parallel_size = 2;
  options.forecast = std::vector<FreezeEvent>{{20, 1}, {40, 2}};
  const TrainingPlan plan = std::get<TrainingPlan>(make_plan({profile, cluster, options}));
  const auto predicted = predict_phases(plan, profile, cluster);
  ASSERT_EQ(plan.phases.size(), predicted.size());
  Nanoseconds sum = 0;
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    EXPECT_EQ(plan.phases[i].predicted.transformation_ns, predicted[i].transformation_ns) << i;
    sum += predicted[i].transformation_ns;
  }
  EXPECT_GT(sum, 0);
}

}  // namespace
}  // namespace frostpipe
