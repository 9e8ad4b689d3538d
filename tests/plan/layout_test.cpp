#include "plan/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace frostpipe {
namespace {

using testing::ElementsAre;

ParallelLayout layout_of(int p, int d, std::vector<int> placement = {}) {
  return {.pipeline_parallel_size = p, .data_parallel_size = d, .tensor_parallel_size = 1, .placement = placement};
}

TEST(Layout, DataIsFasterThanPipeline) {
  const auto layout = layout_of(2, 3);
  EXPECT_EQ(num_ranks(layout), 6);
  EXPECT_THAT(replicas_of(layout, 0), ElementsAre(0, 1, 2));
  EXPECT_THAT(replicas_of(layout, 1), ElementsAre(3, 4, 5));
  EXPECT_THAT(pipeline_of(layout, 1), ElementsAre(1, 4));
}

TEST(Layout, APlacementNamesTheRanksItself) {
  const auto layout = layout_of(2, 2, {7, 5, 3, 1});
  EXPECT_EQ(rank_of(layout, 0, 0), 7);
  EXPECT_EQ(rank_of(layout, 0, 1), 5);
  EXPECT_EQ(rank_of(layout, 1, 0), 3);
  EXPECT_EQ(rank_of(layout, 1, 1), 1);
}

TEST(Layout, PlaceAndRankAreInverseAndOtherRanksAreIdle) {
  for (const auto& layout : {layout_of(1, 1), layout_of(4, 2), layout_of(3, 1), layout_of(2, 2, {4, 0, 2, 6})}) {
    int used = 0;
    for (int rank = 0; rank < 10; ++rank) {
      const auto coordinate = find_coordinate(layout, rank);
      if (!coordinate) continue;
      ++used;
      EXPECT_EQ(rank_of(layout, coordinate->pipeline_rank, coordinate->replica), rank);
    }
    EXPECT_EQ(used, num_ranks(layout));
  }
  EXPECT_FALSE(find_coordinate(layout_of(2, 2, {4, 0, 2, 6}), 1));
  EXPECT_FALSE(find_coordinate(layout_of(2, 1), -1));
}

}  // namespace
}  // namespace frostpipe
