#include "cli/plans/schedule_what_if.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/command_line.h"

namespace frostpipe {
namespace {

using ::testing::HasSubstr;

nlohmann::json answer_to(const ScheduleWhatIf& options) {
  return nlohmann::json::parse(simulate_what_if(options, "json"));
}

ScheduleWhatIf gpipe_of(int ranks, int micro_batches) {
  ScheduleWhatIf options;
  options.choice.name = "GPipe";
  options.choice.shape = {.pipeline_parallel_size = ranks, .num_micro_batches = micro_batches};
  return options;
}

TEST(ScheduleWhatIf, HasTheClosedFormOfGPipe) {
  // (m + p - 1)(F + I + W) = 11 x 3 ms.
  EXPECT_EQ(answer_to(gpipe_of(4, 8)).at("makespan_ns"), 33'000'000);
  EXPECT_THAT(simulate_what_if(gpipe_of(4, 8), "text"),
              HasSubstr("GPipe: 4 ranks, 4 stages, 8 micro-batches\n\nmakespan              33.0 ms"));
}

TEST(ScheduleWhatIf, ChargesMessages) {
  // Two hops, each of 1 MB at 1 GB/s = 1 ms, or of 0.5 ms latency; 6 ms of compute.
  ScheduleWhatIf options = gpipe_of(2, 1);
  options.activation_bytes = 1'000'000;
  options.bandwidth_gbytes_per_second = 1;
  EXPECT_EQ(answer_to(options).at("makespan_ns"), 8'000'000);
  options = gpipe_of(2, 1);
  options.latency_ms = 0.5;
  EXPECT_EQ(answer_to(options).at("makespan_ns"), 7'000'000);
}

TEST(ScheduleWhatIf, JoinedPairsMayRunOneAfterTheOther) {
  ScheduleWhatIf options = gpipe_of(4, 8);
  options.choice.name = "DualPipeV";
  const auto whole = answer_to(options);
  options.split_overlap = true;
  EXPECT_NE(answer_to(options).at("makespan_ns"), whole.at("makespan_ns"));
}

TEST(ScheduleWhatIf, OptionsNeedASchedule) {
  CLI::App app;
  ScheduleWhatIf options;
  add_what_if_options(app, options);
  EXPECT_THAT(test::parse(app, "--pp 8"), HasSubstr("--schedule"));
  EXPECT_EQ(test::parse(app, "--schedule ZB-H1 --pp 8 --forward-ms 18.522 --latency-ms 0.601"), "");
  EXPECT_EQ(options.forward_ms, 18.522);
  EXPECT_EQ(options.latency_ms, 0.601);
  EXPECT_NE(test::parse(app, "--schedule ZB-H1 --forward-ms -1"), "");
}

}  // namespace
}  // namespace frostpipe
