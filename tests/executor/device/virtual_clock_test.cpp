// Oracle: sums by hand. How long the host sleeps has a lower bound alone: a busy machine is late, never early.
#include "executor/device/virtual_clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace frostpipe {
namespace {

constexpr Nanoseconds kMillisecond = 1'000'000;

void be_late() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }

TEST(VirtualClock, PassesAsItIsToldAndSleepsMeanwhile) {
  VirtualClock clock;
  const Nanoseconds begin = clock.now();
  clock.pass(3 * kMillisecond);
  EXPECT_EQ(clock.now(), begin + 3 * kMillisecond);
  EXPECT_GE(steady_now_ns(), begin + 3 * kMillisecond);
  clock.wait_until(begin + kMillisecond);
  EXPECT_EQ(clock.now(), begin + 3 * kMillisecond) << "which is past";
  clock.wait_until(begin + 4 * kMillisecond);
  EXPECT_EQ(clock.now(), begin + 4 * kMillisecond);
}

TEST(VirtualClock, DoesNotTakeOverThatTheHostIsLate) {
  VirtualClock clock;
  const Nanoseconds begin = clock.now();
  for (int action = 0; action < 3; ++action) {
    be_late();
    clock.pass(kMillisecond);
  }
  EXPECT_EQ(clock.now(), begin + 3 * kMillisecond);
  const Nanoseconds late = steady_now_ns() - clock.now();
  EXPECT_GE(late, 12 * kMillisecond);
  clock.pass(kMillisecond);
  EXPECT_GE(steady_now_ns() - clock.now(), late - kMillisecond) << "the time that is lost is not slept";
}

TEST(VirtualClock, TakesTheHostsTimeWhereThatCounts) {
  VirtualClock clock;
  be_late();
  const Nanoseconds begin = clock.now();
  clock.begin_host_time();
  be_late();
  clock.end_host_time();
  EXPECT_GE(clock.now() - begin, 5 * kMillisecond);
  EXPECT_LE(clock.now(), steady_now_ns() - 5 * kMillisecond) << "what was lost before does not count";
}

TEST(VirtualClock, HostTimeThatBeginsAgainHasBegunTheFirstTime) {
  VirtualClock clock;
  const Nanoseconds begin = clock.now();
  be_late();
  clock.end_host_time();
  EXPECT_EQ(clock.now(), begin) << "nothing has begun";
  const Nanoseconds host = steady_now_ns();
  clock.begin_host_time();
  for (int loss = 0; loss < 2; ++loss) {
    be_late();
    clock.begin_host_time();
  }
  clock.end_host_time();
  EXPECT_GE(clock.now() - begin, 10 * kMillisecond);
  EXPECT_LE(clock.now() - begin, steady_now_ns() - host);
}

TEST(VirtualClock, ShowsTheHostsTimeWhenSet) {
  VirtualClock clock;
  be_late();
  const Nanoseconds host = steady_now_ns();
  clock.set_to_host();
  EXPECT_GE(clock.now(), host);
  EXPECT_LE(clock.now(), steady_now_ns());
}

}  // namespace
}  // namespace frostpipe
