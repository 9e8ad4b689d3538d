// Tensor ranks: whose limits hold, and which devices they are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/make_plan.h"
#include "tests/planner/two_blocks.h"

namespace frostpipe {
namespace {

using test::free_cluster;
using test::options_for;
using test::two_blocks;
using testing::HasSubstr;

std::string reason_of(const PlanResult& result) {
  const auto* none = std::get_if<Infeasible>(&result);
  return none ? none->reason : "feasible";
}

// Of two devices with the same layers only tensor rank 1 has too little.
TEST(MakePlan, FitsTheLimitOfEveryTensorRank) {
  Profile profile = two_blocks();
  for (Measurement& one : profile.measurements) one.key.tensor_parallel_size = 2;
  Cluster cluster = free_cluster(4);
  PlanOptions options = options_for(PlanMethod::static_pipeline);
  options.tensor_parallel_size = 2;
  ASSERT_EQ(reason_of(make_plan({profile, cluster, options})), "feasible");
  cluster.devices[1].memory_limit_bytes = 1;
  EXPECT_THAT(reason_of(make_plan({profile, cluster, options})), HasSubstr("rank 1 has 1 B"));
  options.virtual_stages = 2;
  options.schedule = "Interleaved1F1B";  // several stages per rank are cut by other code
  EXPECT_THAT(reason_of(make_plan({profile, cluster, options})), HasSubstr("rank 1 has 1 B"));
}

}  // namespace
}  // namespace frostpipe
