// Oracle: sums computed by hand. The test provides the host's clock, which advances when the rank sleeps or is late; a
// real host's sleep only has a lower bound.
#include "executor/device/virtual_clock.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace frostpipe {
namespace {

constexpr Nanoseconds kMillisecond = 1'000'000;

/// The time is counted from the creation of the rank's clock.
class VirtualClockTest : public testing::Test {
 protected:
  void be_late(int milliseconds) { host_ns_ += milliseconds * kMillisecond; }
  Nanoseconds host() const { return host_ns_ - kUp; }

 private:
  static constexpr Nanoseconds kUp = 1'000'000 * kMillisecond;
  Nanoseconds host_ns_ = kUp;

 protected:
  VirtualClock clock_{HostClock{.now = [this] { return host_ns_; },
                                .sleep_until = [this](Nanoseconds time) { host_ns_ = std::max(host_ns_, time); }}};
};

TEST_F(VirtualClockTest, AdvancesByGivenTimesAndSleepsMeanwhile) {
  EXPECT_EQ(clock_.now(), 0) << "however long the host is up";
  clock_.pass(3 * kMillisecond);
  EXPECT_EQ(clock_.now(), 3 * kMillisecond);
  EXPECT_EQ(host(), 3 * kMillisecond);
  clock_.wait_until(kMillisecond);
  EXPECT_EQ(clock_.now(), 3 * kMillisecond) << "which is past";
  clock_.wait_until(4 * kMillisecond);
  EXPECT_EQ(clock_.now(), 4 * kMillisecond);
  EXPECT_EQ(host(), 4 * kMillisecond);
}

TEST_F(VirtualClockTest, DoesNotTakeOverThatTheHostIsLate) {
  for (int action = 0; action < 3; ++action) {
    be_late(5);
    clock_.pass(kMillisecond);
  }
  EXPECT_EQ(clock_.now(), 3 * kMillisecond);
  EXPECT_EQ(host(), 15 * kMillisecond) << "the time that is lost is not slept";
  clock_.pass(20 * kMillisecond);
  EXPECT_EQ(clock_.now(), 23 * kMillisecond);
  EXPECT_EQ(host(), 23 * kMillisecond) << "made up for, and slept the rest";
}

TEST_F(VirtualClockTest, TakesTheHostsTimeWhereThatCounts) {
  be_late(5);
  clock_.begin_host_time();
  be_late(7);
  clock_.end_host_time();
  EXPECT_EQ(clock_.now(), 7 * kMillisecond) << "what was lost before does not count";
}

TEST_F(VirtualClockTest, HostTimeThatBeginsAgainHasBegunTheFirstTime) {
  be_late(5);
  clock_.end_host_time();
  EXPECT_EQ(clock_.now(), 0) << "nothing has begun";
  clock_.begin_host_time();
  for (int loss = 0; loss < 2; ++loss) {
    be_late(5);
    clock_.begin_host_time();
  }
  clock_.end_host_time();
  EXPECT_EQ(clock_.now(), 10 * kMillisecond);
}

TEST_F(VirtualClockTest, DoesNotMakeUpForWhatItWasLateOnceItIsOnTime) {
  be_late(5);
  clock_.synchronize();
  EXPECT_EQ(clock_.now(), 0);
  clock_.pass(4 * kMillisecond);
  EXPECT_EQ(host(), 9 * kMillisecond) << "slept";
}

TEST(VirtualClockOfThisHost, Sleeps) {
  const Nanoseconds host = steady_now_ns();
  VirtualClock clock;
  clock.pass(3 * kMillisecond);
  EXPECT_GE(steady_now_ns() - host, 3 * kMillisecond);
}

}  // namespace
}  // namespace frostpipe
