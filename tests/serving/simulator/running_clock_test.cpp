// The reserved data plane with a clock that runs by itself, as in a server. Oracles: timelines made by hand, in
// milliseconds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "serving/data_plane/reserved_plane.h"
#include "tests/serving/simulator/serving_plans.h"

namespace frostpipe {
namespace {

using test::kMs;
using test::plan_of;
using test::pool;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class RunningClock : public ::testing::Test, private ServingObserver {
 protected:
  /// Batches of 1 take 12 ms, of 2 take 13; the objective is 30. A single request may wait for another one until 17.
  ServingPlan plan_ = plan_of(30 * kMs, {{pool(1, {12, 13})}});
  ServingEngine engine_{plan_, plan_.models.front(), /*with_timeline=*/false};
  ReservedPlane plane_{engine_};
  std::vector<std::tuple<std::int64_t, int, Nanoseconds>> sent_;  // first request, requests, when
  std::vector<std::pair<std::int64_t, DropReason>> dropped_;

  RunningClock() { engine_.observer = this; }

  void advance_to(Nanoseconds at_ns) {
    engine_.queue.advance_to(at_ns, [this](const ServingEvent& event) { plane_.handle(event); });
  }

  void arrive() {
    const Nanoseconds now_ns = engine_.queue.now();
    plane_.handle({.kind = ServingEvent::Kind::arrival, .index = engine_.arrive(now_ns), .round = 0});
  }

 private:
  void sent(int, std::int64_t first_request, int requests, const std::vector<RouteLeg>&) override {
    sent_.emplace_back(first_request, requests, engine_.queue.now());
  }
  void dropped(std::int64_t request, DropReason reason) override { dropped_.emplace_back(request, reason); }
};

TEST_F(RunningClock, ALoneRequestSetsOutWhenItsTimerIsDue) {
  arrive();
  EXPECT_EQ(engine_.queue.next_ns(), 17 * kMs + 1);
  EXPECT_EQ(plane_.num_waiting(), 1);
  advance_to(17 * kMs + 1);
  EXPECT_THAT(sent_, ElementsAre(std::tuple(0, 1, 17 * kMs + 1)));
  EXPECT_EQ(engine_.queue.next_ns(), std::nullopt);
}

TEST_F(RunningClock, ATimerThatIsLateBorrowsFromWhatIsKeptFree) {
  // 4 of 30 ms are kept free: the timer is due at 13, and wakes us at 16, when 12 ms more end at 28, two after 26.
  engine_.kept_free_ns = 4 * kMs;
  arrive();
  EXPECT_EQ(engine_.queue.next_ns(), 13 * kMs + 1);
  advance_to(16 * kMs + 1);
  EXPECT_THAT(sent_, ElementsAre(std::tuple(0, 1, 16 * kMs + 1)));
  EXPECT_THAT(dropped_, IsEmpty());
}

TEST_F(RunningClock, ATimerThatIsLaterThanWhatIsKeptFreeIsTooLate) {
  engine_.kept_free_ns = 1 * kMs;
  arrive();
  advance_to(19 * kMs);
  EXPECT_THAT(sent_, IsEmpty());
  EXPECT_THAT(dropped_, ElementsAre(Pair(0, DropReason::batch_not_filled)));
}

TEST_F(RunningClock, OnlyThoseThatHaveWaitedBorrow) {
  // The timer's batch occupies the device until 29; a request that arrives at 17 would be answered at 41, after 26 +
  // 17.
  engine_.kept_free_ns = 4 * kMs;
  arrive();
  advance_to(17 * kMs);
  arrive();
  EXPECT_THAT(sent_, ElementsAre(std::tuple(0, 1, 17 * kMs)));
  EXPECT_EQ(plane_.num_waiting(), 1);
  EXPECT_THAT(dropped_, IsEmpty());
}

TEST(RunningClockOfThreeDevices, RequestsBehindASmallerBatchHaveWaitedToo) {
  // Three requests wait for a fourth until 14, since 1 of 30 ms is kept free. The timer comes at 17.5, when only
  // batches of one, of 12 ms, are in time; each of three devices takes one.
  const ServingPlan plan = plan_of(30 * kMs, {{pool(3, {12, 13, 14, 15})}});
  ServingEngine engine(plan, plan.models.front(), /*with_timeline=*/false);
  ReservedPlane plane(engine);
  engine.kept_free_ns = 1 * kMs;
  for (int i = 0; i < 3; ++i)
    plane.handle({.kind = ServingEvent::Kind::arrival, .index = engine.arrive(0), .round = 0});
  EXPECT_EQ(engine.queue.next_ns(), 14 * kMs + 1);
  engine.queue.advance_to(17 * kMs + kMs / 2, [&](const ServingEvent& event) { plane.handle(event); });
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(engine.request(i).drop, std::nullopt) << i;
    EXPECT_EQ(engine.request(i).end_ns, 29 * kMs + kMs / 2) << i;
  }
}

TEST_F(RunningClock, RequestsAreForgottenAndNumbersGoOn) {
  for (int i = 0; i < 3; ++i) arrive();
  EXPECT_THAT(sent_, ElementsAre(std::tuple(0, 2, 0)));
  engine_.forget_before(2);
  EXPECT_EQ(engine_.num_requests(), 3);
  EXPECT_EQ(engine_.request(2).arrival_ns, 0);
  EXPECT_EQ(std::ssize(engine_.run.requests), 1);
  advance_to(5 * kMs);
  arrive();
  EXPECT_EQ(engine_.num_requests(), 4);
  EXPECT_THAT(sent_, ElementsAre(std::tuple(0, 2, 0), std::tuple(2, 2, 5 * kMs)));
}

}  // namespace
}  // namespace frostpipe
