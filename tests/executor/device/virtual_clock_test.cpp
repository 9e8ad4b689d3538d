// Oracle: sums by hand. How long the host sleeps has a lower bound alone, for a busy machine is late and never early;
// but not to sleep at all is told from half a second.
#include "executor/device/virtual_clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace frostpipe {
namespace {

constexpr Nanoseconds kMillisecond = 1'000'000;

void be_late() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }

TEST(VirtualClock, PassesAsItIsToldAndSleepsMeanwhile) {
  const Nanoseconds host = steady_now_ns();
  VirtualClock clock;
  EXPECT_EQ(clock.now(), 0) << "however long the host is up";
  clock.pass(3 * kMillisecond);
  EXPECT_EQ(clock.now(), 3 * kMillisecond);
  EXPECT_GE(steady_now_ns() - host, 3 * kMillisecond);
  clock.wait_until(kMillisecond);
  EXPECT_EQ(clock.now(), 3 * kMillisecond) << "which is past";
  clock.wait_until(4 * kMillisecond);
  EXPECT_EQ(clock.now(), 4 * kMillisecond);
  EXPECT_GE(steady_now_ns() - host, 4 * kMillisecond);
}

TEST(VirtualClock, DoesNotTakeOverThatTheHostIsLate) {
  VirtualClock clock;
  for (int action = 0; action < 3; ++action) {
    be_late();
    clock.pass(kMillisecond);
  }
  EXPECT_EQ(clock.now(), 3 * kMillisecond);
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  const Nanoseconds host = steady_now_ns();
  clock.pass(500 * kMillisecond);
  EXPECT_EQ(clock.now(), 503 * kMillisecond);
  EXPECT_LT(steady_now_ns() - host, 400 * kMillisecond) << "the time that is lost is not slept";
}

TEST(VirtualClock, TakesTheHostsTimeWhereThatCounts) {
  VirtualClock clock;
  be_late();
  const Nanoseconds host = steady_now_ns();
  clock.begin_host_time();
  be_late();
  clock.end_host_time();
  EXPECT_GE(clock.now(), 5 * kMillisecond);
  EXPECT_LE(clock.now(), steady_now_ns() - host) << "what was lost before does not count";
}

TEST(VirtualClock, HostTimeThatBeginsAgainHasBegunTheFirstTime) {
  VirtualClock clock;
  be_late();
  clock.end_host_time();
  EXPECT_EQ(clock.now(), 0) << "nothing has begun";
  const Nanoseconds host = steady_now_ns();
  clock.begin_host_time();
  for (int loss = 0; loss < 2; ++loss) {
    be_late();
    clock.begin_host_time();
  }
  clock.end_host_time();
  EXPECT_GE(clock.now(), 10 * kMillisecond);
  EXPECT_LE(clock.now(), steady_now_ns() - host);
}

TEST(VirtualClock, DoesNotMakeUpForWhatItWasLateOnceItIsOnTime) {
  VirtualClock clock;
  be_late();
  const Nanoseconds host = steady_now_ns();
  clock.be_on_time();
  EXPECT_EQ(clock.now(), 0);
  clock.pass(4 * kMillisecond);
  EXPECT_GE(steady_now_ns() - host, 4 * kMillisecond) << "slept";
}

}  // namespace
}  // namespace frostpipe
