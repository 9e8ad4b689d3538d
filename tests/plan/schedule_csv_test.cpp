// Oracle: to_csv, whose format PyTorch reads. Errors name row and field.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/schedule.h"
#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using examples::message_of;
using testing::AllOf;
using testing::HasSubstr;

std::string error_of(std::string_view csv) {
  return message_of([&] { schedule_from_csv(csv, "hand.csv"); });
}

TEST(ScheduleFromCsv, IsTheInverseOfToCsvForEverySchedule) {
  for (const std::string& name : schedule_names()) {
    SCOPED_TRACE(name);
    const Schedule built = build_schedule(name, {.pipeline_parallel_size = 3, .num_micro_batches = 6});
    const Schedule compute = built.epilogue.empty() ? built : unrolled(built, 2);
    Schedule read = schedule_from_csv(to_csv(compute), "file");
    EXPECT_EQ(read.body, compute.body);
    EXPECT_EQ(read.pipeline_rank_of_stage, compute.pipeline_rank_of_stage);
    EXPECT_EQ(read.num_micro_batches, compute.num_micro_batches);
    EXPECT_EQ(read.num_slices, compute.num_slices);
    EXPECT_FALSE(has_messages(read));

    const Schedule lowered = lower(compute);
    read = schedule_from_csv(to_csv(lowered), "file");
    EXPECT_TRUE(has_messages(read));
    EXPECT_EQ(read.body, lowered.body);  // OPTIMIZER_STEP, which the file lacks, is restored
    EXPECT_NO_THROW(validate(read));
    EXPECT_EQ(compute_only(read).body, compute.body);
  }
}

TEST(ScheduleFromCsv, ReadsIdleSlotsSpacesAndFrozenStages) {
  const Schedule read = schedule_from_csv("0F0,0F1,,\r\n , 1F0 ,1B0,1F1,1B1\r\n\r\n", "hand.csv");
  EXPECT_EQ(to_text(read), "rank 0: 0F0 0F1\nrank 1: 1F0 1B0 1F1 1B1\n");
  EXPECT_EQ(read.first_trainable_stage, 1);
  EXPECT_NO_THROW(validate(lower(read)));
}

TEST(ScheduleFromCsv, ReadsUnshardsThatPyTorchRepeats) {
  const Schedule read = schedule_from_csv("0UNSHARD,0F0,0RESHARD,0UNSHARD,0B0,0RESHARD\n", "file");
  EXPECT_NO_THROW(validate(lower(read)));
}

// Oracle: PyTorch's computation types, which have no RECOMPUTE.
TEST(ToCsv, LeavesOutRecomputation) {
  EXPECT_EQ(to_csv(schedule_from_csv("0F0,0RECOMPUTE0,0B0\n", "file")), "0F0,0B0\n");
}

TEST(ScheduleFromCsv, NamesRowAndField) {
  EXPECT_THAT(error_of("0F0,0B0\n1F0,1X0\n"), AllOf(HasSubstr("hand.csv, row 2, field 2"), HasSubstr("1X0")));
  EXPECT_THAT(error_of("0F0,0B0\n1F0,0B1\n"),
              AllOf(HasSubstr("row 2, field 2: must stand in row 1, where stage 0 began"), HasSubstr("0B1")));
  EXPECT_THAT(error_of("0F0,2F0\n"), HasSubstr("stage 1: must have actions"));
  EXPECT_THAT(error_of("(0F1;0B0\n"), HasSubstr("must close an overlapped pair"));
  EXPECT_THAT(error_of("(0F1;0B0)OVERLAP\n"), HasSubstr("must close an overlapped pair"));
  EXPECT_THAT(error_of("99999999F0\n"), HasSubstr("must have a stage < 65536"));
  EXPECT_THAT(error_of("0F99999999999\n"), HasSubstr("row 1, field 1"));
  EXPECT_THAT(error_of(""), HasSubstr("must have an action"));
  EXPECT_THAT(error_of("\n\n,,\n"), HasSubstr("must have an action"));
}

// 2^20 micro-batches of 2^12 slices, a product of 2^32.
TEST(ScheduleFromCsv, AStageOfVeryManyUnitsIsIncomplete) {
  const Schedule read = schedule_from_csv("0F0s0,0F0s4095,0F1048575\n", "hand.csv");
  EXPECT_THAT(message_of([&] { validate(lower(read)); }), HasSubstr("0B0s0 is missing"));
}

TEST(ScheduleFromCsv, ADeadlockIsReportedWithItsCycle) {
  // Rank 0 waits for micro-batch 0's gradient before it sends micro-batch 1, and rank 1 waits for 1 before 0's
  // backward.
  const Schedule read = schedule_from_csv("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n", "hand.csv");
  EXPECT_THAT(message_of([&] { validate(lower(read)); }),
              AllOf(HasSubstr("pipeline ranks wait for each other forever"), HasSubstr("1RECV_F1"),
                    HasSubstr("0RECV_B0"), HasSubstr("waits for")));
}

}  // namespace
}  // namespace frostpipe
