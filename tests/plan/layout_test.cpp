#include "plan/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace frostpipe {
namespace {

using testing::ElementsAre;

ParallelLayout layout_of(int p, int d, std::vector<int> placement = {}, int t = 1) {
  return {.pipeline_parallel_size = p, .data_parallel_size = d, .tensor_parallel_size = t, .placement = placement};
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

TEST(Layout, TensorRanksAreFastest) {
  const auto layout = layout_of(2, 3, {}, 2);
  EXPECT_EQ(num_ranks(layout), 12);
  EXPECT_THAT(tensor_ranks_of(layout, 0, 0), ElementsAre(0, 1));
  EXPECT_THAT(tensor_ranks_of(layout, 1, 2), ElementsAre(10, 11));
  EXPECT_THAT(replicas_of(layout, 1), ElementsAre(6, 8, 10));
  EXPECT_THAT(replicas_of(layout, 1, 1), ElementsAre(7, 9, 11));
  EXPECT_THAT(all_ranks_of(layout, 1), ElementsAre(6, 7, 8, 9, 10, 11));
  EXPECT_THAT(pipeline_of(layout, 1), ElementsAre(2, 8));
  EXPECT_THAT(pipeline_of(layout, 1, 1), ElementsAre(3, 9));
}

TEST(Layout, PlaceAndRankAreInverseAndOtherRanksAreIdle) {
  for (const auto& layout : {layout_of(1, 1), layout_of(4, 2), layout_of(3, 1), layout_of(2, 2, {4, 0, 2, 6}),
                             layout_of(1, 2, {4, 0, 2, 6}, 2), layout_of(2, 2, {}, 2), layout_of(1, 1, {}, 3)}) {
    int used = 0;
    for (int rank = 0; rank < 10; ++rank) {
      const auto coordinate = find_coordinate(layout, rank);
      if (!coordinate) continue;
      ++used;
      EXPECT_EQ(rank_of(layout, coordinate->pipeline_rank, coordinate->replica, coordinate->tensor), rank);
    }
    EXPECT_EQ(used, num_ranks(layout));
  }
  EXPECT_FALSE(find_coordinate(layout_of(2, 2, {4, 0, 2, 6}), 1));
  EXPECT_FALSE(find_coordinate(layout_of(2, 1), -1));
}

/// Oracle: parts of a range of integers, written out.
TEST(TensorSlice, CutsRoundDownAndNest) {
  EXPECT_EQ(slice_of(1, 3).begin_in(7), 2);
  EXPECT_EQ(slice_of(1, 3).end_in(7), 4);
  EXPECT_EQ(TensorSlice{}.end_in(7), 7);
  for (const int t : {1, 2, 3, 4, 6})
    for (const int factor : {1, 2, 3, 5})
      for (int k = 0; k < t; ++k)
        for (std::int64_t count = 0; count < 60; ++count) {
          const TensorSlice coarse = slice_of(k, t), fine{k * factor, (k + 1) * factor, t * factor};
          EXPECT_EQ(coarse.begin_in(count), fine.begin_in(count)) << count;
          EXPECT_EQ(coarse.end_in(count), fine.end_in(count)) << count;
        }
}

/// Oracle: the integers in both ranges. The common parts with all slices of another size make up the whole slice.
TEST(TensorSlice, TwoHaveInCommonWhatIsInBothRanges) {
  EXPECT_EQ(common_part(slice_of(0, 2), slice_of(1, 3)), (TensorSlice{2, 3, 6}));
  EXPECT_EQ(common_part(slice_of(2, 4), slice_of(1, 2)), slice_of(2, 4));
  EXPECT_EQ(common_part(slice_of(0, 2), slice_of(1, 2)), std::nullopt) << "they only meet";
  for (int t = 1; t <= 8; ++t)
    for (int other_t = 1; other_t <= 8; ++other_t)
      for (std::int64_t count = 0; count < 30; ++count)
        for (int k = 0; k < t; ++k) {
          const TensorSlice slice = slice_of(k, t);
          std::int64_t next = slice.begin_in(count);
          for (int j = 0; j < other_t; ++j) {
            const TensorSlice other = slice_of(j, other_t);
            const std::optional<TensorSlice> part = common_part(slice, other);
            std::vector<std::int64_t> in_both, in_part;
            for (std::int64_t i = 0; i < count; ++i) {
              if (std::max(slice.begin_in(count), other.begin_in(count)) <= i &&
                  i < std::min(slice.end_in(count), other.end_in(count)))
                in_both.push_back(i);
              if (part && part->begin_in(count) <= i && i < part->end_in(count)) in_part.push_back(i);
            }
            EXPECT_EQ(in_part, in_both) << count << " in " << t << " and " << other_t;
            if (!part) continue;
            EXPECT_EQ(part->begin_in(count), next);
            next = part->end_in(count);
          }
          EXPECT_EQ(next, slice.end_in(count));
        }
}

/// Oracle: expected covers, written out.
TEST(WholeFrom, TakesTheFirstPartsThatMeet) {
  const LayerPart first{5, slice_of(0, 2)}, again{1, slice_of(0, 2)}, second{3, slice_of(1, 2)},
      quarter{4, slice_of(2, 4)}, last{2, slice_of(3, 4)};
  EXPECT_EQ(whole_from({{7, {}}}), (std::vector<LayerPart>{{7, {}}}));
  EXPECT_EQ(whole_from({second, first, again}), (std::vector<LayerPart>{first, second}));
  EXPECT_EQ(whole_from({last, again, quarter}), (std::vector<LayerPart>{again, quarter, last}));
  EXPECT_TRUE(whole_from({first, last}).empty()) << "[2/4, 3/4) is nowhere";
  EXPECT_TRUE(whole_from({second}).empty());
  EXPECT_TRUE(whole_from({}).empty());
}

/// Oracle: expected covers, written out.
TEST(WholeFrom, DoesNotEndWhereTheFirstPartLeadsNowhere) {
  const LayerPart half{0, slice_of(0, 2)}, whole{1, {}},
      thirds[] = {{2, slice_of(0, 3)}, {3, slice_of(1, 3)}, {4, slice_of(2, 3)}};
  EXPECT_EQ(whole_from({half, whole}), (std::vector<LayerPart>{whole}));
  EXPECT_EQ(whole_from({half, half, thirds[2], thirds[0], thirds[1]}),
            (std::vector<LayerPart>{thirds[0], thirds[1], thirds[2]}));
}

/// Oracle: the definition, on a range that all slices divide.
TEST(TensorSlice, IsWithinAnotherThatHasAllOfIt) {
  for (int t = 1; t <= 6; ++t)
    for (int k = 0; k < t; ++k)
      for (int other_t = 1; other_t <= 6; ++other_t)
        for (int j = 0; j < other_t; ++j) {
          constexpr int kAll = 60;  // the ends of every slice are whole
          const TensorSlice one = slice_of(k, t), other = slice_of(j, other_t);
          EXPECT_EQ(is_within(one, other),
                    other.begin_in(kAll) <= one.begin_in(kAll) && one.end_in(kAll) <= other.end_in(kAll));
        }
}

}  // namespace
}  // namespace frostpipe
