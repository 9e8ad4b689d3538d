// Oracle: cases made by hand.
#include "executor/elastic/logical_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace frostpipe {
namespace {

using testing::ElementsAre;

TEST(LogicalRanks, StayWhereRanksAreRenumbered) {
  const std::vector<int> logical_ranks{0, 2, 3}, all{0, 1, 2, 3};
  Phase phase{.layout = {.pipeline_parallel_size = 3}, .partition = {{0, 1}, {1, 2}, {2, 3}}};
  phase.predicted.peak_memory_bytes = {10, 20, 30};
  const Phase reported = with_logical_ranks(phase, logical_ranks, 4);
  EXPECT_THAT(reported.layout.placement, ElementsAre(0, 2, 3));
  EXPECT_THAT(reported.predicted.peak_memory_bytes, ElementsAre(10, 0, 20, 30));
  EXPECT_THAT(with_current_ranks(reported, logical_ranks, 4)->layout.placement, ElementsAre(0, 1, 2));
  EXPECT_EQ(with_current_ranks(reported, std::vector<int>{0, 1, 3}, 4), std::nullopt) << "nobody has logical rank 2";
  EXPECT_EQ(with_logical_ranks(phase, all, 4), phase);
  EXPECT_EQ(with_current_ranks(phase, all, 4), phase);
  Cluster cluster;
  for (const Bytes limit : {1, 2, 3, 4}) cluster.devices.push_back({.memory_limit_bytes = limit});
  EXPECT_EQ(remaining(cluster, logical_ranks).devices[1].memory_limit_bytes, 3);
}

}  // namespace
}  // namespace frostpipe
