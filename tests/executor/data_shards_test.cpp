#include "executor/data_shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "executor/data/split.h"

namespace frostpipe {
namespace {

using Ints = std::vector<int>;

TEST(NodesOfSeats, AreEquallyLarge) { EXPECT_EQ(nodes_of_seats(Ints{0, 1, 2, 3}, 4, 2), (Ints{0, 0, 1, 1})); }

TEST(NodesOfSeats, WhoeverIsLeftAfterALossStaysOnItsNode) {
  EXPECT_EQ(nodes_of_seats(Ints{0, 2, 3}, 4, 2), (Ints{0, 1, 1}));
  EXPECT_EQ(nodes_of_seats(Ints{2, 3}, 4, 2), (Ints{1, 1}));  // nobody is left on the first
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
