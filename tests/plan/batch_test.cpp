#include "plan/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace frostpipe {
namespace {

TEST(SplitEvenly, LargerPiecesComeFirst) {
  EXPECT_EQ(split_evenly(10, 4), (std::vector<SampleRange>{{0, 3}, {3, 6}, {6, 8}, {8, 10}}));
  EXPECT_EQ(split_evenly(8, 4), (std::vector<SampleRange>{{0, 2}, {2, 4}, {4, 6}, {6, 8}}));
}

TEST(SplitEvenly, PiecesMayBeEmpty) {
  EXPECT_EQ(split_evenly(2, 3), (std::vector<SampleRange>{{0, 1}, {1, 2}, {2, 2}}));
  EXPECT_EQ(split_evenly(0, 2), (std::vector<SampleRange>{{0, 0}, {0, 0}}));
}

TEST(SplitEvenly, EverySampleIsInOnePieceAndSizesDifferByAtMostOne) {
  for (int n = 0; n < 40; ++n) {
    for (int parts = 1; parts < 20; ++parts) {
      const auto pieces = split_evenly(n, parts);
      ASSERT_EQ(static_cast<int>(pieces.size()), parts);
      int next = 0, largest = 0, smallest = n;
      for (const auto& [begin, end] : pieces) {
        EXPECT_EQ(begin, next);
        next = end;
        largest = std::max(largest, end - begin);
        smallest = std::min(smallest, end - begin);
      }
      EXPECT_EQ(next, n);
      EXPECT_LE(largest - smallest, 1);
    }
  }
}

using Lengths = std::vector<std::int64_t>;

std::int64_t length_of(const Lengths& lengths, const SampleRange& piece) {
  return std::accumulate(lengths.begin() + piece.begin, lengths.begin() + piece.end, std::int64_t{0});
}

/// Oracle: all cuts into at most num_parts pieces, by recursion.
std::int64_t best_bottleneck(const Lengths& lengths, std::size_t begin, int num_parts) {
  if (begin == lengths.size()) return 0;
  if (num_parts == 0) return std::numeric_limits<std::int64_t>::max();
  std::int64_t best = std::numeric_limits<std::int64_t>::max(), first = 0;
  for (std::size_t end = begin + 1; end <= lengths.size(); ++end) {
    first += lengths[end - 1];
    best = std::min(best, std::max(first, best_bottleneck(lengths, end, num_parts - 1)));
  }
  return best;
}

TEST(SplitByLength, WorkedExample) {
  // 40 tokens in 4 pieces: 10 each would be even.
  EXPECT_EQ(split_by_length(Lengths{1, 2, 3, 4, 5, 5, 9, 11}, 4),
            (std::vector<SampleRange>{{0, 4}, {4, 6}, {6, 7}, {7, 8}}));
  EXPECT_EQ(split_by_length(Lengths{7, 1}, 3), (std::vector<SampleRange>{{0, 1}, {1, 2}, {2, 2}}));
  EXPECT_EQ(split_by_length(Lengths{}, 2), (std::vector<SampleRange>{{0, 0}, {0, 0}}));
}

TEST(SplitByLength, EqualLengthsAreCutAsBySplitEvenly) {
  for (int samples = 0; samples < 40; ++samples) {
    for (int parts = 1; parts < 20; ++parts)
      EXPECT_EQ(split_by_length(Lengths(samples, 7), parts), split_evenly(samples, parts)) << samples << " " << parts;
  }
}

TEST(SplitByLength, LongestPieceIsThatOfTheBestOfAllCuts) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    Lengths lengths(random() % 11);
    for (std::int64_t& length : lengths) length = 1 + static_cast<std::int64_t>(random() % 30);
    if (round % 2 == 0) std::sort(lengths.begin(), lengths.end());
    const int num_parts = 1 + static_cast<int>(random() % 5);
    const std::vector<SampleRange> pieces = split_by_length(lengths, num_parts);
    ASSERT_EQ(static_cast<int>(pieces.size()), num_parts);
    std::int64_t longest = 0;
    int next = 0;
    for (const SampleRange& piece : pieces) {
      ASSERT_EQ(piece.begin, next);
      next = piece.end;
      longest = std::max(longest, length_of(lengths, piece));
    }
    ASSERT_EQ(next, static_cast<int>(lengths.size()));
    EXPECT_EQ(longest, best_bottleneck(lengths, 0, num_parts));
  }
}

TEST(LongestMiniBatch, IsTheMeanAndSixDeviationsOfASumOrAllOfTheLongest) {
  // 4 samples of 10 +- 3: the sum is 40 +- 6.
  EXPECT_EQ(longest_mini_batch_tokens(4, {.mean = 10, .deviation = 3, .longest = 50}), 40 + 6 * 6);
  EXPECT_EQ(longest_mini_batch_tokens(4, {.mean = 10, .deviation = 3, .longest = 15}), 4 * 15);
  EXPECT_EQ(longest_mini_batch_tokens(4, {.mean = 10.1, .deviation = 0, .longest = 11}), 41);  // whole tokens
  EXPECT_EQ(longest_mini_batch_tokens(64, {.mean = 7, .deviation = 0, .longest = 7}), 64 * 7);
}

TEST(LongestPiece, WorkedExamples) {
  // Two pieces of 18 tokens have at best 12 and 6 if the last two samples have 6 each: (18 + 6) / 2.
  EXPECT_EQ(longest_piece_tokens(8, 18, 6, 2), 12);
  EXPECT_EQ(split_by_length(Lengths{1, 1, 1, 1, 1, 1, 6, 6}, 2), (std::vector<SampleRange>{{0, 7}, {7, 8}}));
  EXPECT_EQ(longest_piece_tokens(3, 30, 10, 2), 20);  // two of three samples
  EXPECT_EQ(longest_piece_tokens(3, 25, 10, 4), 10);  // no more than one sample
  EXPECT_EQ(longest_piece_tokens(8, 18, 6, 1), 18);
}

TEST(LongestPiece, IsThatOfSplitEvenlyWhereAllAreEquallyLong) {
  for (int samples = 1; samples < 40; ++samples) {
    for (int parts = 1; parts < 20; ++parts)
      EXPECT_EQ(longest_piece_tokens(samples, 7 * samples, 7, parts), 7 * split_evenly(samples, parts).front().end);
  }
}

TEST(LongestPiece, IsNeverExceededByARealSplit) {
  std::mt19937 random(5);
  int reached = 0;
  for (int round = 0; round < 3000; ++round) {
    Lengths lengths(1 + random() % 24);
    const unsigned most = 1 + random() % 40;
    for (std::int64_t& length : lengths)
      length = 1 + static_cast<std::int64_t>(random() % 4 == 0 ? random() % most : random() % (1 + most / 8));
    if (round % 2 == 0) std::sort(lengths.begin(), lengths.end());
    const int num_samples = static_cast<int>(lengths.size()), num_parts = 1 + static_cast<int>(random() % 8);
    const std::int64_t bound = longest_piece_tokens(num_samples, length_of(lengths, {0, num_samples}),
                                                    static_cast<int>(*std::ranges::max_element(lengths)), num_parts);
    std::int64_t longest = 0;
    for (const SampleRange& piece : split_by_length(lengths, num_parts))
      longest = std::max(longest, length_of(lengths, piece));
    EXPECT_LE(longest, bound);
    reached += longest == bound;
  }
  EXPECT_GT(reached, 100);  // the bound is tight
}

// Monte Carlo: exponential lengths, limited to 5 times their mean, are as skewed as texts.
TEST(LongestMiniBatch, IsLongerThanAnyOfManyRandomOnesAndNotByMuch) {
  std::mt19937 random(11);
  std::exponential_distribution<double> skewed(1.0 / 20);
  Lengths data(5000);
  for (std::int64_t& length : data) length = 1 + static_cast<std::int64_t>(std::min(99.0, skewed(random)));
  SampleLengths lengths{.longest = static_cast<int>(*std::ranges::max_element(data))};
  for (const std::int64_t length : data) lengths.mean += static_cast<double>(length) / 5000;
  for (const std::int64_t length : data)
    lengths.deviation += (static_cast<double>(length) - lengths.mean) * (static_cast<double>(length) - lengths.mean);
  lengths.deviation = std::sqrt(lengths.deviation / 5000);

  constexpr int kSamples = 64, kParts = 5;
  const std::int64_t bound = longest_mini_batch_tokens(kSamples, lengths);
  const std::int64_t piece_bound = longest_piece_tokens(kSamples, bound, lengths.longest, kParts);
  std::int64_t longest = 0, longest_piece = 0;
  for (int epoch = 0; epoch < 50; ++epoch) {
    std::shuffle(data.begin(), data.end(), random);
    for (int begin = 0; begin + kSamples <= 5000; begin += kSamples) {
      Lengths batch(data.begin() + begin, data.begin() + begin + kSamples);
      std::sort(batch.begin(), batch.end());  // as a run sorts them
      longest = std::max(longest, length_of(batch, {0, kSamples}));
      for (const SampleRange& piece : split_by_length(batch, kParts))
        longest_piece = std::max(longest_piece, length_of(batch, piece));
    }
  }
  EXPECT_LE(longest, bound);
  EXPECT_LE(longest_piece, piece_bound);
  // A normal sum over that many batches exceeds its mean by at most about 3.5 deviations, and the bound has 6.
  const double mean = kSamples * lengths.mean;
  EXPECT_LT(static_cast<double>(bound) - mean, 2 * (static_cast<double>(longest) - mean));
  EXPECT_LT(bound, kSamples * lengths.longest / 2);  // far below the bound from the longest sample
}

TEST(MicroBatchSamples, ReplicaZeroHasTheFirstPieces) {
  // 64 samples, 2 replicas x 4 micro-batches: pieces of 8.
  EXPECT_EQ(micro_batch_samples(64, 2, 4, 0, 0), (SampleRange{0, 8}));
  EXPECT_EQ(micro_batch_samples(64, 2, 4, 0, 3), (SampleRange{24, 32}));
  EXPECT_EQ(micro_batch_samples(64, 2, 4, 1, 0), (SampleRange{32, 40}));
}

TEST(MicroBatchSamples, AreTheSamePiecesWhateverTheLayout) {
  // Doubling the replicas and halving the micro-batches cuts a mini-batch at the same places.
  const auto pieces = split_evenly(61, 8);
  for (const int d : {1, 2, 4, 8})
    for (int replica = 0; replica < d; ++replica)
      for (int i = 0; i < 8 / d; ++i)
        EXPECT_EQ(micro_batch_samples(61, d, 8 / d, replica, i), pieces[replica * (8 / d) + i]);
}

}  // namespace
}  // namespace frostpipe
