#include "plan/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
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
