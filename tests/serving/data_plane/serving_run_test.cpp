// Oracle: a run of five requests counted by hand.
#include "serving/data_plane/serving_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace frostpipe {
namespace {

using ::testing::ElementsAre;

TEST(ServingSummary, CountsWhatWasInTimeLateAndDropped) {
  ServingRun run{.objective_ns = 100, .window_ns = 2'000};
  run.requests = {
      {.arrival_ns = 0, .admitted_ns = 0, .end_ns = 40},
      {.arrival_ns = 10, .admitted_ns = 40, .end_ns = 110},  // just in time
      {.arrival_ns = 20, .admitted_ns = 40, .end_ns = 121},  // late
      {.arrival_ns = 30, .end_ns = 30, .drop = DropReason::no_device_in_time},
      {.arrival_ns = 40, .end_ns = 90, .drop = DropReason::batch_not_filled},
  };
  run.pools = {{.num_virtual_devices = 2, .busy_ns = 1'000}};
  const ServingSummary summary = summarize(run);
  EXPECT_EQ(summary.requests, 5);
  EXPECT_EQ(summary.in_time, 2);
  EXPECT_EQ(summary.late, 1);
  EXPECT_THAT(summary.drops, ElementsAre(1, 1, 0, 0));
  EXPECT_DOUBLE_EQ(summary.attainment, 0.4);
  EXPECT_DOUBLE_EQ(summary.goodput_per_second, 2 / 2e-6);
  EXPECT_EQ(summary.mean_latency_ns, (40 + 100 + 101) / 3);
  EXPECT_EQ(summary.median_latency_ns, 100);
  EXPECT_EQ(summary.largest_latency_ns, 101);
  EXPECT_THAT(summary.utilisation, ElementsAre(0.25));
}

TEST(ServingSummary, NoRequestIsAllAttained) { EXPECT_EQ(summarize({.window_ns = 10}).attainment, 1); }

}  // namespace
}  // namespace frostpipe
