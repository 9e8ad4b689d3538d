#include "cli/shared/shape_text.h"

#include <gtest/gtest.h>

namespace frostpipe {
namespace {

/// Rank 3 has stages 0 and 3 of a V of two pipeline ranks, rank 1 has stages 1 and 2; ranks 0 and 2 are idle.
Phase v_on_ranks_three_and_one() {
  Phase phase;
  phase.schedule = "ZBVZeroBubble";
  phase.virtual_stages = 2;
  phase.partition = {{0, 1}, {1, 2}, {2, 3}, {3, 4}};
  phase.layout = {.pipeline_parallel_size = 2, .placement = {3, 1}};
  return phase;
}

Cluster cluster_of_types(const std::vector<std::string>& types) {
  Cluster cluster;
  for (const std::string& type : types) cluster.devices.push_back({.type = type});
  return cluster;
}

TEST(StagesPerRank, FollowThePlacement) {
  const Phase phase = v_on_ranks_three_and_one();
  EXPECT_EQ(stages_of_ranks(phase, 4), (std::vector<std::vector<int>>{{}, {1, 2}, {}, {0, 3}}));
  EXPECT_EQ(stages_per_rank_text(phase, 4), "- / 1+2 / - / 0+3");
}

TEST(StagesPerRank, AreTooManyForARowBeyond120Characters) {
  Phase phase;
  phase.layout.pipeline_parallel_size = 100;
  for (int stage = 0; stage < 100; ++stage) phase.partition.push_back({stage, stage + 1});
  EXPECT_EQ(stages_per_rank_text(phase, 100), "of 100 ranks: see simulate --format json");
}

TEST(StagesPerRank, AreNamedWhereTheyAreNotPlain) {
  const Cluster equal = cluster_of_types({"A100", "A100"}), mixed = cluster_of_types({"A100", "V100"});
  Phase plain;
  plain.layout.pipeline_parallel_size = 2;
  EXPECT_FALSE(names_stages_of_ranks({plain}, equal));
  EXPECT_TRUE(names_stages_of_ranks({plain}, mixed));
  Phase placed = plain;
  placed.layout.placement = {1, 0};
  EXPECT_TRUE(names_stages_of_ranks({plain, placed}, equal));
}

TEST(DeviceLine, NamesTheTypesOfTheRanksIfThereAreSeveral) {
  EXPECT_EQ(device_line(cluster_of_types({"A100", "A100"})), "");
  EXPECT_EQ(device_line(cluster_of_types({"A100", "A100", "V100", "V100", "V100"})),
            "device per rank: A100 / A100 / V100 x3\n");
}

}  // namespace
}  // namespace frostpipe
