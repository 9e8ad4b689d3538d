// Oracles: published figures and closed forms; torch.distributed.pipelining for its CSV.
#include <utility>

#include "plan/schedule.h"
#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using testing::HasSubstr;

TEST(ToCsv, IsTheFileThatPyTorchLoads) {
  // When this was written, torch 2.11's _validate_schedule and _simulate_comms_compute accepted these files.
  const Schedule schedule = one_f_one_b({.pipeline_parallel_size = 2, .num_micro_batches = 3});
  EXPECT_EQ(to_csv(schedule),
            "0F0,0F1,0B0,0F2,0B1,0B2\n"
            "1F0,1B0,1F1,1B1,1F2,1B2\n");
  EXPECT_EQ(to_csv(lower(schedule)),
            "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0F2,0SEND_F2,0RECV_B1,0B1,0RECV_B2,0B2,0REDUCE_GRAD\n"
            "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1,1RECV_F2,1F2,1B2,1SEND_B2,1REDUCE_GRAD\n");
}

TEST(ToGrid, ShowsTheFigureOfTheMegatronPaper) {
  // 1F1B, 4 stages, 8 micro-batches, F = 1, B = 2: (m + p - 1) (F + B) = 33; idle / ideal = (p - 1) / m = 3 / 8.
  EXPECT_EQ(
      to_grid(one_f_one_b({.pipeline_parallel_size = 4, .num_micro_batches = 8})),
      "1F1B: 4 stages, 8 micro-batches\n"
      "F = forward (1 unit), B = backward (2), .. = idle; messages take no time\n"
      "time    0              5              10             15             20             25             30\n"
      "rank 0  F0 F1 F2 F3 .. .. .. .. .. .. B0--- F4 B1--- F5 B2--- F6 B3--- F7 B4--- .. B5--- .. B6--- .. B7---\n"
      "rank 1  .. F0 F1 F2 .. .. .. .. B0--- F3 B1--- F4 B2--- F5 B3--- F6 B4--- F7 B5--- .. B6--- .. B7--- .. ..\n"
      "rank 2  .. .. F0 F1 .. .. B0--- F2 B1--- F3 B2--- F4 B3--- F5 B4--- F6 B5--- F7 B6--- .. B7--- .. .. .. ..\n"
      "rank 3  .. .. .. F0 B0--- F1 B1--- F2 B2--- F3 B3--- F4 B4--- F5 B5--- F6 B6--- F7 B7--- .. .. .. .. .. ..\n"
      "33 units; idle 36 of 132 rank units: bubble overhead 0.375 (idle / busy), bubble fraction 0.273 (idle / all)\n");
}

TEST(ToGrid, HasTheClosedFormOfTheMakespan) {
  for (const std::string name : {"GPipe", "1F1B"})
    for (int p = 1; p <= 5; ++p)
      for (int m = 1; m <= 12; ++m)
        EXPECT_THAT(to_grid(build_schedule(name, {p, m, 0})),
                    HasSubstr(std::to_string(3 * (m + p - 1)) + " units; idle"));
}

TEST(ToGrid, CountsOneStageAndOneMicroBatchInTheSingular) {
  EXPECT_THAT(to_grid(gpipe({.pipeline_parallel_size = 1, .num_micro_batches = 1})),
              HasSubstr("GPipe: 1 stage, 1 micro-batch\n"));
}

TEST(ToGrid, MarksFrozenForwardsAndStagesThatShareAPipelineRank) {
  EXPECT_THAT(to_grid(gpipe({.pipeline_parallel_size = 2, .num_micro_batches = 2, .first_trainable_stage = 1})),
              HasSubstr("rank 0  f0 f1 .. .. .. .. ..\nrank 1  .. F0 F1 B0--- B1---\n"));
  EXPECT_THAT(to_grid(examples::zig_zag()), HasSubstr("rank 0  0F0 ... ... 3F0 3I0 3W0 ... 0B0----\n"
                                                      "rank 1  ... 1F0 2F0 ... ... 2I0 1I0 2W0 1W0\n"));
}

TEST(ToGrid, RefusesAScheduleThatDoesNotGoOn) {
  Schedule schedule = gpipe({.pipeline_parallel_size = 2, .num_micro_batches = 1});
  std::swap(schedule.body[0][0], schedule.body[0][1]);
  EXPECT_THAT(examples::message_of([&] { to_grid(schedule); }), HasSubstr("waits forever at"));
}

TEST(ToText, NamesThePartsOnlyWhereThereAreSeveral) {
  Schedule schedule = gpipe({.pipeline_parallel_size = 1, .num_micro_batches = 1});
  schedule.prologue = {{parse_action("0F0", "")}};
  EXPECT_EQ(to_text(schedule), "prologue\nrank 0: 0F0\nbody\nrank 0: 0F0 0B0\nepilogue\n");
}

}  // namespace
}  // namespace frostpipe
