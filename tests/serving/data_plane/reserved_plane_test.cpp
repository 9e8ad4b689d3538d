// Oracles: timelines made by hand, in milliseconds, from the rules in reserved_plane.h; a search over every device.
#include "serving/data_plane/reserved_plane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "tests/serving/simulator/serving_plans.h"

namespace frostpipe {
namespace {

using test::ends_of;
using test::kMs;
using test::plan_of;
using test::pool;
using test::serve;
using ::testing::ElementsAre;

TEST(ReservedPlane, ARequestThatCannotBeInTimeIsDroppedOnArrival) {
  // One device of 10 ms, objective 25 ms: the third request would end at 30.
  const ServingRun run = serve(plan_of(25 * kMs, {{pool(1, {10})}}), {0, 1 * kMs, 2 * kMs, 6 * kMs});
  EXPECT_THAT(ends_of(run), ElementsAre(10 * kMs, 20 * kMs, 2 * kMs, 30 * kMs));
  EXPECT_EQ(run.requests[1].admitted_ns, 1 * kMs) << "a reservation lies in the future";
  EXPECT_EQ(run.requests[2].drop, DropReason::no_device_in_time);
  EXPECT_EQ(run.pools[0].busy_ns, 30 * kMs);
}

TEST(ReservedPlane, TransfersTakeTurnsAtTheDownlinkOfOneServer) {
  // Two senders on separate servers, two receivers on one server: both batches are computed at 10, the transfers of 4
  // ms end at 14 and 18, the receivers need 3.
  ServingPlan plan = plan_of(100 * kMs, {{pool(2, {10}), pool(2, {3}, 4)}});
  plan.models[0].pipelines[0].partitions[1].device_class = "paired";
  plan.device_classes.push_back({.name = "paired", .count = 2, .devices_per_server = 2});
  EXPECT_THAT(ends_of(serve(plan, {0, 0})), ElementsAre(17 * kMs, 21 * kMs));
  plan.device_classes.back().devices_per_server = 1;
  EXPECT_THAT(ends_of(serve(plan, {0, 0})), ElementsAre(17 * kMs, 17 * kMs));
}

TEST(ReservedPlane, HalvesOfADeviceShareItsServersCard) {
  ServingPlan plan = plan_of(100 * kMs, {{pool(2, {10}), pool(2, {3}, 4)}});
  plan.models[0].pipelines[0].partitions[0].share = 2;
  EXPECT_THAT(ends_of(serve(plan, {0, 0})), ElementsAre(17 * kMs, 21 * kMs)) << "one uplink";
}

TEST(ReservedPlane, LatencyDelaysABatchAndOccupiesNoCard) {
  ServingPlan plan = plan_of(100 * kMs, {{pool(1, {1}), pool(1, {1}, 4)}});
  plan.models[0].pipelines[0].partitions[1].latency_ns = 20 * kMs;
  EXPECT_THAT(ends_of(serve(plan, {0, 0})), ElementsAre((1 + 4 + 20 + 1) * kMs, (1 + 4 + 4 + 20 + 1) * kMs));
}

TEST(ReservedPlane, ABatchWaitsToTheLastInstantForOneRequestMore) {
  // Batches of 1 take 12 ms, of 2 take 20; the objective is 30. A single request waits until a second would be too
  // late: 10.
  const ServingPlan plan = plan_of(30 * kMs, {{pool(1, {12, 20})}});
  EXPECT_THAT(ends_of(serve(plan, {0})), ElementsAre(22 * kMs + 1));
  EXPECT_THAT(ends_of(serve(plan, {0, 9 * kMs})), ElementsAre(29 * kMs, 29 * kMs));
  EXPECT_THAT(ends_of(serve(plan, {0, 10 * kMs})), ElementsAre(30 * kMs, 30 * kMs)) << "the last instant";
}

TEST(ReservedPlane, WaitingForABatchCountsWhatIsReservedAlready) {
  // The device is busy until 20 with the first two. The third, at 2, could be in a batch from 20 to 40; as that batch
  // would wait for 18 ms anyway and has 2 ms to spare, it waits for a fourth until 2 + 18 + 2 = 22.
  const ServingPlan plan = plan_of(40 * kMs, {{pool(1, {12, 20})}});
  const ServingRun run = serve(plan, {0, 0, 2 * kMs});
  EXPECT_EQ(run.requests[2].admitted_ns, 22 * kMs + 1);
  EXPECT_EQ(run.requests[2].end_ns, 34 * kMs + 1);
}

TEST(ReservedPlane, ARequestAtItsFirstLookIsDroppedWhereOnlyASmallBatchIsInTime) {
  // The device is busy until 20 with the first two. The third, at 5, has time until 35: a batch of two would end at 40,
  // a single request at 32.
  const ServingRun run = serve(plan_of(30 * kMs, {{pool(1, {12, 20})}}), {0, 0, 5 * kMs});
  EXPECT_EQ(run.requests[2].drop, DropReason::no_device_in_time);
}

TEST(ReservedPlane, ARequestThatWaitedInVainIsDroppedWhereNoBatchIsInTime) {
  // Measured times may fall with the batch: two in 20 ms, one in 31, which is never in time. The wait ends at 10.
  const ServingRun run = serve(plan_of(30 * kMs, {{pool(1, {31, 20})}}), {0});
  EXPECT_EQ(run.requests[0].drop, DropReason::batch_not_filled);
  EXPECT_EQ(run.requests[0].end_ns, 10 * kMs + 1);
}

TEST(ReservedPlane, WaitingEndsInTimeForTheBatchThatIsHere) {
  // One takes longer than two, 29 ms and 20, or as long; it is sent at the last instant at which it ends at 30.
  for (const Nanoseconds one_ms : {29, 20}) {
    const ServingRun run = serve(plan_of(30 * kMs, {{pool(1, {one_ms, 20})}}), {0});
    EXPECT_EQ(run.requests[0].drop, std::nullopt);
    EXPECT_EQ(run.requests[0].admitted_ns, (30 - one_ms) * kMs);
    EXPECT_EQ(run.requests[0].end_ns, 30 * kMs);
  }
  // A batch has up to three requests, and two are waiting. Both together would take 31 ms, so the first is sent alone
  // at 5 ms, and the other waits for more requests until 6 ms.
  const ServingRun run = serve(plan_of(30 * kMs, {{pool(2, {25, 31, 20})}}), {0, 1 * kMs});
  EXPECT_THAT(ends_of(run), ElementsAre(30 * kMs, 31 * kMs));
  EXPECT_EQ(run.requests[1].admitted_ns, 6 * kMs);
}

TEST(ReservedPlane, WaitingEndsInTimeForWhatIsHereBehindOtherBatches) {
  // The device is busy until 19 with the first two. The third has time until 40, so that alone it can begin at 20.
  const ServingRun run = serve(plan_of(38 * kMs, {{pool(1, {20, 19})}}), {0, 0, 2 * kMs});
  EXPECT_EQ(run.requests[2].drop, std::nullopt);
  EXPECT_EQ(run.requests[2].end_ns, 40 * kMs);
}

TEST(ReservedPlane, ThePipelineThatWaitsLeastIsTakenNotTheFastest) {
  // The first request goes to the first pipeline, as neither waits; the second to the other, which is idle; the third
  // would wait 8 ms for the first pipeline and 14 for the second.
  const ServingRun run = serve(plan_of(100 * kMs, {{pool(1, {10})}, {pool(1, {15})}}), {0, 1 * kMs, 2 * kMs});
  EXPECT_THAT(ends_of(run), ElementsAre(10 * kMs, 16 * kMs, 20 * kMs));
}

TEST(ReservedPlane, APipelineThatWouldBeLateIsTheLastChoice) {
  // At 7 the first pipeline is reserved until 15 and the second until 16. The request would wait less for the first,
  // but end at 30, later than its 29; on the second it would end at 24.
  const ServingRun run = serve(plan_of(22 * kMs, {{pool(1, {15})}, {pool(1, {8})}}), {0, 0, 0, 7 * kMs});
  EXPECT_THAT(ends_of(run), ElementsAre(15 * kMs, 8 * kMs, 16 * kMs, 24 * kMs));
}

/// Searches every device of the pool, by the definition of the rule.
RouteLeg leg_by_trying_all(const std::vector<Pool>& pools, std::size_t i, int sender, int requests, Nanoseconds ready) {
  const Pool& to = pools[i];
  RouteLeg best;
  Nanoseconds best_key = std::numeric_limits<Nanoseconds>::max();
  for (int device = 0; device < static_cast<int>(to.device_until.size()); ++device) {
    Nanoseconds begin = ready;
    if (i > 0) {
      begin = std::max({ready, pools[i - 1].uplinks[pools[i - 1].server_of(sender)].free_at(),
                        to.downlinks[to.server_of(device)].free_at()});
    }
    const Nanoseconds start = std::max(begin + to.transfer_ns(requests), to.device_until[device]);
    const Nanoseconds end = start + to.compute_ns(requests);
    const Nanoseconds key = i + 1 < pools.size() ? std::max(end, to.uplinks[to.server_of(device)].free_at()) : end;
    if (key < best_key) best_key = key, best = {device, begin, start, end};
  }
  return best;
}

TEST(ReservedPlane, ARouteTakesTheDeviceThatATrialOfAllTakes) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 500; ++round) {
    const int largest = static_cast<int>(4 + random() % 6);
    ServingPlan plan = plan_of(100 * kMs, {{pool(largest, {5, 7}), pool(largest, {3, 4}, 1), pool(3, {2, 3}, 2)}},
                               static_cast<int>(1 + random() % 3));
    ServingEngine engine(plan, plan.models[0], false);
    for (Pool& one : engine.pipelines[0]) {
      const auto any_time = [&random] { return static_cast<Nanoseconds>(random() % 12) * kMs; };
      for (Nanoseconds& until : one.device_until) until = any_time();
      for (auto* links : {&one.uplinks, &one.downlinks})
        for (LinkQueue& link : *links) link.carry(0, any_time());
    }
    const int requests = static_cast<int>(1 + random() % 2);
    const Nanoseconds now = static_cast<Nanoseconds>(random() % 6) * kMs;
    const Route route = find_route(engine.pipelines[0], requests, now);
    Nanoseconds ready = now;
    for (std::size_t i = 0; i < 3; ++i) {
      const RouteLeg leg =
          leg_by_trying_all(engine.pipelines[0], i, i > 0 ? route.legs[i - 1].device : 0, requests, ready);
      ASSERT_EQ(route.legs[i].device, leg.device) << round;
      ASSERT_EQ(route.legs[i].transfer_begin_ns, leg.transfer_begin_ns) << round;
      ASSERT_EQ(route.legs[i].compute_end_ns, leg.compute_end_ns) << round;
      ready = leg.compute_end_ns;
    }
    EXPECT_EQ(route.end_ns, ready);
    const Nanoseconds unloaded = requests == 1 ? 5 + 3 + 2 + 3 : 7 + 4 + 3 + 6;
    EXPECT_EQ(route.wait_ns, ready - now - unloaded * kMs);
  }
}

}  // namespace
}  // namespace frostpipe
