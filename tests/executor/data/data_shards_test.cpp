#include "executor/data/data_shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "executor/data/split.h"

namespace frostpipe {
namespace {

using Ints = std::vector<int>;

TEST(NodesOfLogicalRanks, AreEquallyLarge) {
  EXPECT_EQ(nodes_of_logical_ranks(Ints{0, 1, 2, 3}, 4, 2), (Ints{0, 0, 1, 1}));
}

TEST(NodesOfLogicalRanks, RemainingRanksStayOnTheirNodesAfterALoss) {
  EXPECT_EQ(nodes_of_logical_ranks(Ints{0, 2, 3}, 4, 2), (Ints{0, 1, 1}));
  EXPECT_EQ(nodes_of_logical_ranks(Ints{2, 3}, 4, 2), (Ints{1, 1}));  // no rank is left on the first node
}

TEST(DataShards, DealsSamplesOut) {
  EXPECT_THAT(data_shards({5, 6, 7, 8, 9}, 2), ::testing::ElementsAre(Ints{5, 7, 9}, Ints{6, 8}));
}

TEST(DataShards, OneShardIsTheEpochOrder) {
  Ints samples(20);
  std::iota(samples.begin(), samples.end(), 100);
  Ints expected = epoch_order(20, 3, 2);
  for (int& index : expected) index += 100;
  EXPECT_EQ(sharded_epoch_order(data_shards(samples, 1), 8, 3, 2), expected);
}

/// Oracle: the possible contents of a mini-batch, counted by hand; the order within it is that of sort_by_length.
TEST(GroupByLength, MiniBatchesOfAWindowHoldSimilarLengthsAndEveryShardKeepsItsPlaces) {
  // 44 samples in mini-batches of 8 (the last of 4) from two shards, in windows of 4; a sample's length is its number
  // / 2, and even samples are shard 0's.
  Ints samples(44);
  std::iota(samples.begin(), samples.end(), 0);
  const Ints before = sharded_epoch_order(data_shards(samples, 2), 8, 1, 0);
  const auto length_of = [](int sample) { return sample / 2; };
  const auto grouped = [&](std::uint64_t seed, int epoch) {
    Ints order = before;
    group_by_length(order, {.global_batch_size = 8, .num_shards = 2, .num_mini_batches = 4}, seed, epoch, length_of);
    return order;
  };
  const Ints order = grouped(1, 0);
  for (const int begin : {0, 32}) {
    const int end = begin == 0 ? 32 : 44;
    EXPECT_EQ(std::set<int>(order.begin() + begin, order.begin() + end),
              std::set<int>(before.begin() + begin, before.begin() + end));
    std::set<std::pair<int, int>> ranges;  // shortest and longest of each mini-batch's first part
    for (int batch = begin; batch < end; batch += 8) {
      const int size = std::min(8, 44 - batch);
      for (int i = 0; i < size; ++i) EXPECT_EQ(order[batch + i] % 2, i < size / 2 ? 0 : 1) << batch << " " << i;
      const auto [least, most] = std::minmax_element(order.begin() + batch, order.begin() + batch + size / 2);
      ranges.insert({*least, *most});
    }
    int last = -1;
    for (const auto& [least, most] : ranges) {  // they do not overlap
      EXPECT_GT(least, last);
      last = most;
    }
  }
  EXPECT_EQ(order, grouped(1, 0));
  EXPECT_NE(order, grouped(1, 1));
  EXPECT_NE(order, grouped(2, 0));
}

TEST(SortByLength, KeepsEachShardsPartOfEachMiniBatch) {
  // Mini-batches of 6 and 4 samples from two shards; a sample's length is its last digit.
  Ints order{13, 11, 12, 29, 25, 25, 7, 3, 9, 1};
  sort_by_length(order, 6, 2, [](int sample) { return sample % 10; });
  EXPECT_EQ(order, (Ints{11, 12, 13, 25, 25, 29, 3, 7, 1, 9}));
  Ints stable{21, 11, 31};
  sort_by_length(stable, 3, 1, [](int sample) { return sample % 10; });
  EXPECT_EQ(stable, (Ints{21, 11, 31}));
}

TEST(DataShards, EveryMiniBatchIsDrawnShardByShard) {
  // 22 samples, even ones in shard 0: mini-batches of 8 start with 4 even ones; the last one of 6 with 3.
  Ints samples(22);
  std::iota(samples.begin(), samples.end(), 0);
  for (int epoch = 0; epoch < 3; ++epoch) {
    const Ints order = sharded_epoch_order(data_shards(samples, 2), 8, 1, epoch);
    for (int i = 0; i < 22; ++i) {
      const int begin = i / 8 * 8, size = std::min(8, 22 - begin);
      EXPECT_EQ(order[i] % 2, i - begin < size / 2 ? 0 : 1) << "epoch " << epoch << ", place " << i;
    }
    EXPECT_EQ(std::set<int>(order.begin(), order.end()).size(), 22U);
  }
  EXPECT_NE(sharded_epoch_order(data_shards(samples, 2), 8, 1, 0),
            sharded_epoch_order(data_shards(samples, 2), 8, 1, 1));
}

TEST(DataShards, UnevenOnesStillGiveEverySampleOnce) {
  for (const int shards : {2, 3, 5}) {
    for (const int samples_count : {1, 4, 7, 31}) {
      Ints samples(samples_count);
      std::iota(samples.begin(), samples.end(), 0);
      Ints order = sharded_epoch_order(data_shards(samples, shards), 4, 9, 0);
      std::sort(order.begin(), order.end());
      EXPECT_EQ(order, samples) << shards << " shards";
    }
  }
}

}  // namespace
}  // namespace frostpipe
