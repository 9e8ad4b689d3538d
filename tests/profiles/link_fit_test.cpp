#include "profiles/link_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"

namespace frostpipe {
namespace {

using testing::HasSubstr;

constexpr Bytes kMiB = 1 << 20;

/// A round of 8 bytes and 1, 4 and 16 MiB over a link of that latency and speed, in which large transfers also wait for
/// `once_ns`.
LinkRound round_over(Nanoseconds latency_ns, double bytes_per_second, Nanoseconds once_ns = 0) {
  LinkRound round{{8, latency_ns}};
  for (const Bytes bytes : {kMiB, 4 * kMiB, 16 * kMiB})
    round.push_back(
        {bytes, latency_ns + once_ns + static_cast<Nanoseconds>(1e9 * static_cast<double>(bytes) / bytes_per_second)});
  return round;
}

std::string failure_of(const std::vector<LinkRound>& rounds) {
  try {
    fit_link(rounds, "messages between ranks");
  } catch (const RuntimeFailure& failure) {
    return failure.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(LinkFit, FindsTheLinkThatMadeTheTimes) {
  const Link link = fit_link({round_over(40'000, 3e9)}, "links");
  EXPECT_EQ(link.latency_ns, 40'000);
  EXPECT_NEAR(static_cast<double>(link.bandwidth_bytes_per_second), 3e9, 3e4);
  EXPECT_NEAR(static_cast<double>(link.measured_bandwidth->low_bytes_per_second), 3e9, 3e4);
  EXPECT_NEAR(static_cast<double>(link.measured_bandwidth->high_bytes_per_second), 3e9, 3e4);
  EXPECT_FALSE(is_unsteady(link));
}

TEST(LinkFit, AFixedCostOfLargeTransfersDoesNotChangeTheBandwidth) {
  // A line through the small message and 1 MiB alone would give 1 MiB / (333 + 5000 us) = 0.2 GB/s.
  const Link link = fit_link({round_over(40'000, 3e9, 5'000'000)}, "links");
  EXPECT_NEAR(static_cast<double>(link.bandwidth_bytes_per_second), 3e9, 3e4);
}

TEST(LinkFit, DisturbedTransfersDoNotBendIt) {
  // In four of nine rounds the scheduler takes 8 ms from one random transfer, so each size is disturbed in four at
  // most.
  std::mt19937 random(3);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<LinkRound> rounds;
    for (int i = 0; i < 9; ++i) {
      rounds.push_back(round_over(40'000, 3e9));
      if (i < 4) rounds.back()[random() % 4].time_ns += 8'000'000;
    }
    const Link link = fit_link(rounds, "links");
    EXPECT_EQ(link.latency_ns, 40'000);
    EXPECT_NEAR(static_cast<double>(link.bandwidth_bytes_per_second), 3e9, 3e4);
  }
}

TEST(LinkFit, SaysTheMiddleHalfOfWhatWasMeasured) {
  // 1 to 9 GB/s: the quartiles are 3 and 7, the median 5.
  std::vector<LinkRound> rounds;
  for (int i = 1; i <= 9; ++i) rounds.push_back(round_over(1000 * i, i * 1e9));
  const Link link = fit_link(rounds, "links");
  EXPECT_EQ(link.latency_ns, 5000);
  EXPECT_NEAR(static_cast<double>(link.bandwidth_bytes_per_second), 5e9, 5e4);
  EXPECT_NEAR(static_cast<double>(link.measured_bandwidth->low_bytes_per_second), 3e9, 3e4);
  EXPECT_NEAR(static_cast<double>(link.measured_bandwidth->high_bytes_per_second), 7e9, 7e4);
  EXPECT_TRUE(is_unsteady(link));
  EXPECT_EQ(to_text(link), "latency 5.00 us, bandwidth 5.00 GB/s (half of the measurements: 3.00 to 7.00)");
}

TEST(LinkFit, RefusesWhatNoLinkCanDo) {
  // A megabyte in a nanosecond would be 1048576.00 GB/s.
  EXPECT_THAT(failure_of({{{8, 50'000}, {kMiB, 50'001}, {2 * kMiB, 50'002}}}),
              AllOf(HasSubstr("messages between ranks"), HasSubstr("1.05e+06 GB/s"), HasSubstr("quiet")));
  EXPECT_THAT(failure_of({{{8, 50'000}, {kMiB, 900'000}, {4 * kMiB, 900'000}}}),
              HasSubstr("4194304 bytes take no longer than 1048576 bytes"));
  EXPECT_THAT(failure_of({{{8, 50'000}, {kMiB, 900'000}, {4 * kMiB, 300'000}}}), HasSubstr("no longer"));
}

TEST(LinkFit, RoundsThatMakeNoSenseAreOutvoted) {
  const Link link = fit_link({round_over(40'000, 2e9),
                              {{8, 40'000}, {kMiB, 9'000'000}, {4 * kMiB, 8'000'000}, {16 * kMiB, 7'000'000}},
                              round_over(40'000, 2e9)},
                             "links");
  EXPECT_NEAR(static_cast<double>(link.bandwidth_bytes_per_second), 2e9, 2e4);
  EXPECT_GT(link.measured_bandwidth->high_bytes_per_second, 0);
}

TEST(LinkThrough, GoesThroughBothTimes) {
  // 1,000 bytes more in 500 ns: 2 GB/s; 400 bytes take 200 ns of the 700.
  const Link link = link_through({400, 700}, {1'400, 1'200});
  EXPECT_EQ(link.latency_ns, 500);
  EXPECT_EQ(link.bandwidth_bytes_per_second, 2'000'000'000);
}

TEST(LinkThrough, MakesUpNoBandwidthWhereNoneWasMeasured) {
  const Link all_latency{.latency_ns = 650, .bandwidth_bytes_per_second = 0};
  EXPECT_EQ(link_through({400, 700}, {1'400, 650}), all_latency);      // the larger transfer is faster
  EXPECT_EQ(link_through({400, 650}, {1'400, 650}), all_latency);      // no slope
  EXPECT_EQ(link_through({400, 649}, {1'000'400, 650}), all_latency);  // 1e15 bytes per second
}

}  // namespace
}  // namespace frostpipe
