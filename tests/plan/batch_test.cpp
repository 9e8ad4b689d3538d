#include "plan/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

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
