#include "cli/plans/schedule_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/command_line.h"

namespace frostpipe {
namespace {

using ::testing::HasSubstr;

nlohmann::json answer_to(const Schedule& schedule, const ScheduleTimes& times) {
  return nlohmann::json::parse(schedule_times_text(schedule, times, /*weight_gradient_share=*/1, "json"));
}

Schedule schedule_of(const std::string& name, int ranks, int micro_batches) {
  return build_schedule(name, {.pipeline_parallel_size = ranks, .num_micro_batches = micro_batches});
}

TEST(ScheduleTimes, HaveTheClosedFormOfGPipe) {
  // (m + p - 1)(F + I + W) = 11 x 3 ms.
  EXPECT_EQ(answer_to(schedule_of("GPipe", 4, 8), {}).at("makespan_ns"), 33'000'000);
  EXPECT_THAT(schedule_times_text(schedule_of("GPipe", 4, 8), {}, 1, "times"),
              HasSubstr("GPipe: 4 ranks, 4 stages, 8 micro-batches\n\nmakespan              33.0 ms"));
}

TEST(ScheduleTimes, ChargeMessages) {
  // Two hops, which occupy the link for 1 ms or take 0.5 ms of latency; 6 ms of compute.
  const Schedule schedule = schedule_of("GPipe", 2, 1);
  EXPECT_EQ(answer_to(schedule, {.message_ms = 1}).at("makespan_ns"), 8'000'000);
  EXPECT_EQ(answer_to(schedule, {.latency_ms = 0.5}).at("makespan_ns"), 7'000'000);
}

TEST(ScheduleTimes, AreOptions) {
  CLI::App app;
  ScheduleTimes times;
  add_times_options(app, times);
  EXPECT_EQ(test::parse(app, "--compute-ms 18.522,18.086,9.337 --latency-ms 0.601"), "");
  EXPECT_EQ(times.compute_ms, (std::vector<double>{18.522, 18.086, 9.337}));
  EXPECT_EQ(times.latency_ms, 0.601);
  for (const char* const wrong : {"--compute-ms 1,2", "--compute-ms 1,2,3,4", "--compute-ms 1,2,-1", "--latency-ms -1"})
    EXPECT_NE(test::parse(app, wrong), "") << wrong;
}

}  // namespace
}  // namespace frostpipe
