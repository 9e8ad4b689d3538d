// Oracles: times by hand; mean and dispersion of the processes as their definitions give them.
#include "simulator/serving/arrivals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace frostpipe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using enum ArrivalProcess;

constexpr Nanoseconds kSecond = 1'000'000'000;

/// Variance over mean of the numbers of requests in windows of a second: 1 for Poisson.
double dispersion(const std::vector<Nanoseconds>& times, int seconds) {
  std::vector<double> counts(seconds);
  for (const Nanoseconds at_ns : times) ++counts[at_ns / kSecond];
  const double mean = std::accumulate(counts.begin(), counts.end(), 0.0) / seconds;
  double squares = 0;
  for (const double count : counts) squares += (count - mean) * (count - mean);
  return squares / (seconds - 1) / mean;
}

TEST(Arrivals, EvenOnesAreOnePerGap) {
  EXPECT_THAT(arrivals_of(even, 4, kSecond, 1), ElementsAre(250'000'000, 500'000'000, 750'000'000));
  EXPECT_THAT(arrivals_of(even, 0, kSecond, 1), IsEmpty());
}

TEST(Arrivals, PoissonHasExponentialGapsOfTheRate) {
  const std::vector<Nanoseconds> times = arrivals_of(poisson, 1000, 200 * kSecond, 7);
  // 200,000 expected; the number's standard deviation is its root, 447.
  EXPECT_NEAR(static_cast<double>(times.size()), 200'000, 3 * 447);
  std::vector<Nanoseconds> gaps(times.size());
  std::adjacent_difference(times.begin(), times.end(), gaps.begin());
  const auto longer = std::count_if(gaps.begin(), gaps.end(), [](Nanoseconds gap) { return gap > 2'000'000; });
  EXPECT_NEAR(static_cast<double>(longer) / static_cast<double>(gaps.size()), std::exp(-2.0), 0.003);
  EXPECT_NEAR(dispersion(times, 200), 1, 0.3);
}

TEST(Arrivals, SquareAlternatesBetweenThreeHalvesAndHalfOfTheRate) {
  const std::vector<Nanoseconds> times = arrivals_of(square, 1000, 100 * kSecond, 3);
  std::vector<int> counts(2);
  for (const Nanoseconds at_ns : times) ++counts[at_ns / kSecond % 2];
  EXPECT_NEAR(counts[0], 75'000, 3 * 274);
  EXPECT_NEAR(counts[1], 25'000, 3 * 158);
}

TEST(Arrivals, MmppKeepsTheMeanRateAndIsBursty) {
  // Bursts of 0.5 s at 3 times and calms of 2 s at half the rate: (0.5 x 3 + 2 x 0.5) / 2.5 = 1. Over 4,000 s there are
  // 1,600 of each, so the mean is known to some per cent.
  const std::vector<Nanoseconds> times = arrivals_of(mmpp, 100, 4'000 * kSecond, 5);
  EXPECT_NEAR(static_cast<double>(times.size()) / 400'000, 1, 0.04);
  EXPECT_GT(dispersion(times, 4'000), 20);
}

TEST(Arrivals, AreSortedInTheWindowAndTheSeedsOwn) {
  for (const ArrivalProcess process : {even, poisson, square, mmpp}) {
    const std::vector<Nanoseconds> times = arrivals_of(process, 500, 3 * kSecond, 11);
    EXPECT_TRUE(std::is_sorted(times.begin(), times.end())) << to_string(process);
    EXPECT_GE(times.front(), 0) << to_string(process);
    EXPECT_LT(times.back(), 3 * kSecond) << to_string(process);
    EXPECT_EQ(times, arrivals_of(process, 500, 3 * kSecond, 11)) << to_string(process);
    EXPECT_EQ(times == arrivals_of(process, 500, 3 * kSecond, 12), process == even) << to_string(process);
    EXPECT_EQ(find_arrival_process(to_string(process)), process);
  }
  EXPECT_EQ(find_arrival_process("gamma"), std::nullopt);
}

TEST(Arrivals, RecordedTimesAreStretchedToARate) {
  // Three requests in 60 s become three in 1.5 s: all times by 40.
  EXPECT_THAT(at_rate(std::vector<Nanoseconds>{0, 20 * kSecond, 60 * kSecond}, 2),
              ElementsAre(0, kSecond / 2, 3 * kSecond / 2));
}

TEST(Arrivals, AreDealtByWeightInTheirOrder) {
  std::vector<Nanoseconds> times(40'000);
  std::iota(times.begin(), times.end(), Nanoseconds{0});
  const auto dealt = dealt_by_weight(times, std::vector<double>{3, 0, 1}, 1);
  ASSERT_EQ(dealt.size(), 3U);
  EXPECT_NEAR(static_cast<double>(dealt[0].size()), 30'000, 3 * 87);
  EXPECT_THAT(dealt[1], IsEmpty());
  EXPECT_EQ(dealt[0].size() + dealt[2].size(), times.size());
  EXPECT_TRUE(std::is_sorted(dealt[0].begin(), dealt[0].end()));
}

}  // namespace
}  // namespace frostpipe
