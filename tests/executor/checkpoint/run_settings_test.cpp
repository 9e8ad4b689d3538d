// Oracle: the test's own changes.
#include <gtest/gtest.h>

#include "executor/checkpoint/checkpoint.h"

namespace frostpipe {
namespace {

TEST(RunSettings, TheFirstDifferenceIsNamed) {
  const RunSettings settings{.seed = 3};
  RunSettings other = settings;
  EXPECT_FALSE(first_difference(settings, other));
  other.seed = 4;
  EXPECT_EQ(first_difference(settings, other), "seed: 3 in the checkpoint, 4 now");
  other.data_fingerprint = "of other held-out texts";
  EXPECT_EQ(first_difference(settings, other), "seed: 3 in the checkpoint, 4 now");
  other.seed = settings.seed;
  EXPECT_EQ(first_difference(settings, other),
            "data_fingerprint: \"\" in the checkpoint, \"of other held-out texts\" now");
  other = settings;
  other.group_by_length = 8;  // written only if it is not 0
  EXPECT_EQ(first_difference(settings, other), "group_by_length: none in the checkpoint, 8 now");
  EXPECT_EQ(first_difference(other, settings), "group_by_length: 8 in the checkpoint, none now");
  other = settings;
  other.data_shards = 2;
  EXPECT_EQ(first_difference(other, settings),
            "data_shards: 2 in the checkpoint, 1 now (one for each host; --nodes 2 divides the data as before)");
  other = settings;
  other.frozen_dtype = DType::kBFloat16;
  EXPECT_EQ(first_difference(settings, other), "frozen_dtype: none in the checkpoint, \"bfloat16\" now");
}

}  // namespace
}  // namespace frostpipe
