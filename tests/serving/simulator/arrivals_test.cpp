// Oracles: times by hand; mean and dispersion of the processes by their definitions.
#include "serving/simulator/arrivals.h"

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

// In the period of 2 s, ten neighbouring tenths of a second have 150 requests each, the other ten 50; the rate changes
// inside two of them.
TEST(Arrivals, SquareAlternatesBetweenThreeHalvesAndHalfOfTheRate) {
  const std::vector<Nanoseconds> times = arrivals_of(square, 1000, 100 * kSecond, 3);
  std::vector<double> counts(20);
  for (const Nanoseconds at_ns : times) counts[at_ns / (kSecond / 10) % 20] += 1.0 / 50;
  const auto is_high = [&](int tenth) { return std::abs(counts[tenth] - 150) < 10; };
  const auto is_low = [&](int tenth) { return std::abs(counts[tenth] - 50) < 6; };
  int high = 0, low = 0;
  for (int tenth = 0; tenth < 20; ++tenth) {
    high += is_high(tenth);
    low += is_low(tenth);
    EXPECT_FALSE(is_high(tenth) && is_high((tenth + 10) % 20)) << tenth;
  }
  EXPECT_GE(high, 9);
  EXPECT_GE(low, 9);
}

// Half a second is usually within one state of the process: the mean over seeds is the rate only if a run may begin in
// any state.
TEST(Arrivals, HaveTheirMeanInShortWindowsOverManySeeds) {
  constexpr int kSeeds = 4'000;
  for (const ArrivalProcess process : {poisson, square, mmpp}) {
    for (const Nanoseconds window_ns : {kSecond / 2, 3 * kSecond / 2}) {
      double requests = 0;
      for (int seed = 0; seed < kSeeds; ++seed)
        requests += static_cast<double>(arrivals_of(process, 100, window_ns, seed).size());
      // The rate's standard deviation is that of mmpp, 100 x sqrt(0.2 x 2^2 + 0.8 x 0.5^2) = 100, over sqrt(4000): 1.6.
      const double expected = 1e-9 * static_cast<double>(window_ns) * 100;
      EXPECT_NEAR(requests / kSeeds, expected, 0.06 * expected) << to_string(process) << ", " << window_ns;
    }
  }
}

TEST(Arrivals, MmppKeepsTheMeanRateAndIsBursty) {
  // Bursts of 0.5 s at 3 times and calms of 2 s at half the rate: (0.5 x 3 + 2 x 0.5) / 2.5 = 1. Over 4,000 s there are
  // 1,600 of each, so the mean is accurate to some per cent.
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
