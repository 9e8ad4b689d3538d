#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/memory.h"
#include "plan/schedule.h"
#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using examples::zig_zag;

TEST(Lower, SendsNothingBetweenStagesOfOnePipelineRank) {
  const Schedule lowered = lower(zig_zag());
  EXPECT_EQ(to_text(lowered),
            "rank 0: 0F0 0SEND_F0 3RECV_F0 3F0 3I0 3SEND_B0 3W0 0RECV_B0 0B0 0REDUCE_GRAD 3REDUCE_GRAD 0OPTIMIZER_STEP "
            "3OPTIMIZER_STEP\n"
            "rank 1: 1RECV_F0 1F0 2F0 2SEND_F0 2RECV_B0 2I0 1I0 1SEND_B0 2W0 1W0 1REDUCE_GRAD 2REDUCE_GRAD "
            "1OPTIMIZER_STEP 2OPTIMIZER_STEP\n");
  EXPECT_NO_THROW(validate(lowered));
}

TEST(Lower, AJoinedPairReceivesBeforeAndSendsAfterBoth) {
  Schedule schedule = one_f_one_b({.pipeline_parallel_size = 2, .num_micro_batches = 2});
  schedule.body[0][1].overlaps_next = true;  // 0F1 with 0B0
  const Schedule lowered = lower(schedule);
  EXPECT_EQ(to_text(lowered).substr(0, 73),
            "rank 0: 0F0 0SEND_F0 0RECV_B0 (0F1;0B0)OVERLAP_F_B 0SEND_F1 0RECV_B1 0B1 ");
  EXPECT_EQ(to_csv(schedule), "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,1B0,1F1,1B1\n");
}

TEST(Dependencies, AreInputForwardAndMatchingSend) {
  const Schedule schedule = lower(zig_zag());
  const auto of = [&](const char* text) {
    std::string found;
    for (const auto& action : Dependencies(schedule).of(parse_action(text, ""))) found += to_string(action) + " ";
    return found;
  };
  EXPECT_EQ(of("0F0"), "");
  EXPECT_EQ(of("1F0"), "1RECV_F0 ");
  EXPECT_EQ(of("2F0"), "1F0 ");
  EXPECT_EQ(of("1RECV_F0"), "0SEND_F0 ");
  EXPECT_EQ(of("0SEND_F0"), "0F0 ");
  EXPECT_EQ(of("3I0"), "3F0 ");
  EXPECT_EQ(of("3W0"), "3I0 ");
  EXPECT_EQ(of("3SEND_B0"), "3I0 ");
  EXPECT_EQ(of("2I0"), "2F0 2RECV_B0 ");
  EXPECT_EQ(of("1I0"), "1F0 2I0 ");
  EXPECT_EQ(of("0B0"), "0F0 0RECV_B0 ");
  EXPECT_EQ(of("1REDUCE_GRAD"), "1W0 ");
  EXPECT_EQ(of("0REDUCE_GRAD"), "0B0 ");
  EXPECT_EQ(of("1OPTIMIZER_STEP"), "1REDUCE_GRAD ");
}

TEST(PeakInFlight, AChunkCountsItsShareAndASplitBackwardFreesAfterW) {
  // Two chunks on each pipeline rank: 1F 2F saved until their W.
  EXPECT_THAT(peak_in_flight(zig_zag()), testing::ElementsAre(1, 1));
}

}  // namespace
}  // namespace frostpipe
