#include "executor/profiler/layer_bench.h"

#include <gtest/gtest.h>

#include <vector>

namespace frostpipe {
namespace {

using Lengths = std::vector<std::int64_t>;

/// Worked out by hand: the quarters' middles of {1, 1, 2, 2, 4, 4, 9, 9} are 1, 2, 4, 9, 16 tokens; four samples of 8
/// tokens have 32. Where the two longest are cut at 10, the others have the remaining 12.
TEST(MadeUpLengths, FollowTheDataAndHaveTheMean) {
  const std::vector<int> data{1, 1, 2, 2, 4, 4, 9, 9};
  EXPECT_EQ(made_up_lengths(4, 4, data, 512), (Lengths{1, 2, 4, 9}));
  EXPECT_EQ(made_up_lengths(4, 8, data, 512), (Lengths{2, 4, 8, 18}));
  EXPECT_EQ(made_up_lengths(4, 8, data, 10), (Lengths{4, 8, 10, 10}));
  EXPECT_EQ(made_up_lengths(3, 5, {}, 512), (Lengths{5, 5, 5}));
}

}  // namespace
}  // namespace frostpipe
