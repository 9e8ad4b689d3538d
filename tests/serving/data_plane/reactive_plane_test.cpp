// Oracle: timelines made by hand, in milliseconds, from the rules in reactive_plane.h.
#include "serving/data_plane/reactive_plane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/serving/simulator/serving_plans.h"

namespace frostpipe {
namespace {

using test::ends_of;
using test::kMs;
using test::plan_of;
using test::pool;
using ::testing::ElementsAre;

ServingRun serve_reactively(const ServingPlan& plan, const std::vector<Nanoseconds>& arrivals) {
  return test::serve(plan, arrivals, DataPlane::reactive);
}

TEST(ReactivePlane, ADeviceTakesTheOldestAndDropsWhatIsTooLate) {
  // One device of 10 ms, objective 25: at 20 the third request, due at 27, could end at 30 only; the fourth
  // is due at 31.
  const ServingRun run = serve_reactively(plan_of(25 * kMs, {{pool(1, {10})}}), {0, 1 * kMs, 2 * kMs, 6 * kMs});
  EXPECT_THAT(ends_of(run), ElementsAre(10 * kMs, 20 * kMs, 20 * kMs, 30 * kMs));
  EXPECT_EQ(run.requests[2].drop, DropReason::time_spent_in_queues);
  EXPECT_EQ(run.requests[2].admitted_ns, std::nullopt);
  EXPECT_EQ(run.requests[3].admitted_ns, 20 * kMs);
}

TEST(ReactivePlane, APoolLeavesTheLaterOnesWhatThePlanSaysTheyTake) {
  // 12 or 20 ms, then 2 x 1 ms and 5 ms for the planned batch of two: the first pool may use 33 of 40 ms, and waits for
  // a second request until 33 - 20 = 13. The single request arrives at 13 + 12 + 1 = 26 and may wait until 40 - 5 = 35.
  const ServingPlan plan = plan_of(40 * kMs, {{pool(1, {12, 20}), pool(1, {3, 5}, 1)}});
  EXPECT_THAT(ends_of(serve_reactively(plan, {0})), ElementsAre(38 * kMs + 1));
  EXPECT_THAT(ends_of(serve_reactively(plan, {0, 13 * kMs})), ElementsAre(40 * kMs, 40 * kMs)) << "the last instant";
}

TEST(ReactivePlane, ABatchGoesToTheDeviceWithTheFewestRequests) {
  // Requests are computed at 1, 2 and 3, and each then has a transfer of 1 ms: to the first device, to the second, and,
  // as both have one request, to the one whose downlink has been free for longer.
  const ServingRun run = serve_reactively(plan_of(100 * kMs, {{pool(1, {1}), pool(2, {2}, 1)}}), {0, 0, 0});
  EXPECT_THAT(ends_of(run), ElementsAre(4 * kMs, 5 * kMs, 6 * kMs));
}

TEST(ReactivePlane, PipelinesShareRequestsByThroughput) {
  ServingPlan plan = plan_of(1'000 * kMs, {{pool(1, {1})}, {pool(1, {1})}});
  plan.models[0].pipelines[0].requests_per_second = 3;
  std::vector<Nanoseconds> arrivals;
  for (int i = 0; i < 8; ++i) arrivals.push_back(i * kMs);
  const ServingRun run = serve_reactively(plan, arrivals);
  EXPECT_EQ(run.pools[0].requests, 6);
  EXPECT_EQ(run.pools[1].requests, 2);
}

TEST(ReactivePlane, ALaterPoolDropsToo) {
  // Two fast senders, one receiver of 10 ms: the second would end at 1 + 10 + 10 = 21.
  const ServingRun run = serve_reactively(plan_of(20 * kMs, {{pool(2, {1}), pool(1, {10})}}), {0, 0});
  EXPECT_THAT(ends_of(run), ElementsAre(11 * kMs, 11 * kMs));
  EXPECT_EQ(run.requests[1].drop, DropReason::time_spent_in_queues);
  EXPECT_EQ(run.requests[1].admitted_ns, 0);
}

}  // namespace
}  // namespace frostpipe
