// Oracles: the orders that the papers draw or state, worked out for small shapes.
#include <algorithm>

#include "plan/schedule.h"
#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using testing::HasSubstr;

TEST(ZeroBubbleH1, IsTheFigureOfThePaper) {
  // p = 2, m = 3 by the rule: 1 - r forwards ahead, and W lags r micro-batches behind I.
  EXPECT_EQ(to_text(zero_bubble_h1({.pipeline_parallel_size = 2, .num_micro_batches = 3})),
            "rank 0: 0F0 0F1 0I0 0W0 0F2 0I1 0W1 0I2 0W2\n"
            "rank 1: 1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1W2\n");
}

TEST(PipeDream2BW, UsesThePublishedWeightVersions) {
  // Narayanan et al. 2021, 3.1: micro-batch k (from 1) uses version max(floor((k - 1) / m) - 1, 0), forward and
  // backward on every stage.
  const Schedule schedule = unrolled(pipedream_2bw({.pipeline_parallel_size = 4, .num_micro_batches = 4}), 4);
  const int published[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2};
  for (const auto& list : schedule.body) {
    EXPECT_EQ(list.size(), 2 * 16);
    int newest = 0;
    for (const Action& action : list) {
      EXPECT_EQ(action.weight_version, published[*action.micro_batch]) << to_string(action);
      newest = std::max<int>(newest, action.weight_version);
      EXPECT_LE(newest - action.weight_version, 1);  // two buffers are enough
    }
  }
}

TEST(PipeDream2BW, FillsTheBubbleWithTheNextMiniBatch) {
  EXPECT_EQ(to_text(pipedream_2bw({.pipeline_parallel_size = 2, .num_micro_batches = 2})),
            "prologue\nrank 0: 0F0\nrank 1: \n"
            "body\nrank 0: 0F1 0B0 0F0+1 0B1\nrank 1: 1F0 1B0 1F1 1B1\n"
            "epilogue\nrank 0: 0F1 0B0 0B1\nrank 1: 1F0 1B0 1F1 1B1\n");
  EXPECT_EQ(to_text(unrolled(pipedream_2bw({.pipeline_parallel_size = 2, .num_micro_batches = 2}), 3)),
            "rank 0: 0F0 0F1 0B0 0F2 0B1 0F3 0B2 0F4@1 0B3 0F5@1 0B4@1 0B5@1\n"
            "rank 1: 1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3 1F4@1 1B4@1 1F5@1 1B5@1\n");
}

TEST(TeraPipe, BackwardsAreTheExactReverse) {
  EXPECT_EQ(to_text(terapipe({.pipeline_parallel_size = 1, .num_micro_batches = 2, .token_slices = 2})),
            "rank 0: 0F0s0 0F0s1 0F1s0 0F1s1 0B1s1 0B1s0 0B0s1 0B0s0\n");
}

TEST(Seq1F1B, TakesSlicesOfAMicroBatchBackInDescendingOrder) {
  EXPECT_EQ(to_text(seq_one_f_one_b({.pipeline_parallel_size = 2, .num_micro_batches = 2, .token_slices = 2})),
            "rank 0: 0F0s0 0F0s1 0F1s0 0B0s1 0F1s1 0B0s0 0B1s1 0B1s0\n"
            "rank 1: 1F0s0 1F0s1 1B0s1 1F1s0 1B0s0 1F1s1 1B1s1 1B1s0\n");
}

TEST(TokenSlices, AreInOrderOrRejected) {
  Schedule schedule = lower(terapipe({.pipeline_parallel_size = 1, .num_micro_batches = 1, .token_slices = 2}));
  std::swap(schedule.body[0][0], schedule.body[0][1]);  // 0F0s1 before 0F0s0
  EXPECT_THAT(examples::message_of([&] { validate(schedule); }),
              HasSubstr("0F0s1 waits for 0F0s0 (compute action 2), which stands after it"));
  schedule = lower(terapipe({.pipeline_parallel_size = 1, .num_micro_batches = 1, .token_slices = 2}));
  std::erase(schedule.body[0], parse_action("0B0s0", ""));
  EXPECT_THAT(examples::message_of([&] { validate(schedule); }), HasSubstr("0B0s0 is missing"));
  EXPECT_EQ(examples::message_of([&] {
              build_schedule("1F1B", {.pipeline_parallel_size = 2, .num_micro_batches = 2, .token_slices = 2});
            }),
            "schedule 1F1B: token slices: must be 1 (TeraPipe and Seq1F1B have more), is 2");
}

TEST(DeepSpeedOrder, IsThatOf1F1BWithMessagesOneTickLater) {
  for (int p = 1; p <= 5; ++p) {
    for (int m = 1; m <= 7; ++m) {
      const Schedule schedule = one_f_one_b_of_deepspeed({.pipeline_parallel_size = p, .num_micro_batches = m});
      EXPECT_NO_THROW(validate(schedule));
      EXPECT_EQ(compute_only(schedule).body, one_f_one_b({.pipeline_parallel_size = p, .num_micro_batches = m}).body);
    }
  }
  EXPECT_THAT(to_text(one_f_one_b_of_deepspeed({.pipeline_parallel_size = 2, .num_micro_batches = 2})),
              HasSubstr("rank 0: 0F0 0SEND_F0 0F1 0RECV_B0 0SEND_F1 0B0 0RECV_B1 0B1 "));
}

}  // namespace
}  // namespace frostpipe
