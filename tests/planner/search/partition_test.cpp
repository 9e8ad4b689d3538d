#include "planner/search/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "base/error.h"
#include "tests/support/published_sizes.h"

namespace frostpipe {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;

template <class T>
std::vector<T> stage_sums(const std::vector<T>& cost, const Partition& partition) {
  std::vector<T> sums;
  for (const LayerRange& stage : partition) {
    sums.push_back(std::accumulate(cost.begin() + stage.begin, cost.begin() + stage.end, T{}));
  }
  return sums;
}

std::vector<int> stage_lengths(const Partition& partition) {
  std::vector<int> lengths;
  for (const LayerRange& stage : partition) lengths.push_back(stage.end - stage.begin);
  return lengths;
}

/// Appends every partition of [begin, n) into `stages`, cuts ascending.
void all_partitions(int begin, int n, int stages, Partition& prefix, std::vector<Partition>& all) {
  if (stages == 1) {
    all.push_back(prefix);
    all.back().push_back({begin, n});
    return;
  }
  for (int cut = begin + 1; cut + stages - 1 <= n; ++cut) {
    prefix.push_back({begin, cut});
    all_partitions(cut, n, stages - 1, prefix, all);
    prefix.pop_back();
  }
}

/// The key by which partitions are compared: slowest of all stages, first cut, slowest of the stages after it, second
/// cut, ...
std::vector<Nanoseconds> rank_of(const std::vector<Nanoseconds>& cost, const Partition& partition) {
  const auto sums = stage_sums(cost, partition);
  std::vector<Nanoseconds> key;
  for (std::size_t stage = 0; stage < partition.size(); ++stage) {
    key.push_back(*std::max_element(sums.begin() + static_cast<std::ptrdiff_t>(stage), sums.end()));
    key.push_back(partition[stage].end);
  }
  return key;
}

TEST(PartitionExact, BalancesAWorkedExample) {
  const std::vector<Nanoseconds> cost{7, 1, 1, 1, 5, 5};
  EXPECT_EQ(partition_exact(cost, 2), (Partition{{0, 4}, {4, 6}}));
  EXPECT_EQ(partition_exact(cost, 3), (Partition{{0, 1}, {1, 5}, {5, 6}}));  // 7, 8, 5
}

TEST(PartitionExact, TiesGoToTheEarlierCut) {
  EXPECT_EQ(partition_exact(std::vector<Nanoseconds>{3, 0, 0, 3}, 2), (Partition{{0, 1}, {1, 4}}));
  EXPECT_EQ(partition_exact(std::vector<Nanoseconds>{0, 0, 0}, 3), (Partition{{0, 1}, {1, 2}, {2, 3}}));
}

TEST(PartitionExact, EqualsBruteForceOnRandomChains) {
  std::mt19937 random(5);
  for (int round = 0; round < 4000; ++round) {
    const int n = 1 + static_cast<int>(random() % 10);
    const int stages = 1 + static_cast<int>(random() % std::min(n, 5));
    const int spread = 1 + static_cast<int>(random() % 12);  // small values make ties
    std::vector<Nanoseconds> cost(n);
    for (auto& one : cost) one = random() % spread;
    std::vector<Partition> all;
    Partition prefix;
    all_partitions(0, n, stages, prefix, all);
    const Partition best = *std::min_element(all.begin(), all.end(), [&](const Partition& a, const Partition& b) {
      return rank_of(cost, a) < rank_of(cost, b);
    });
    const Partition partition = partition_exact(cost, stages);
    validate(partition, n, "partition_exact");
    ASSERT_EQ(to_string(partition), to_string(best)) << "round " << round;
  }
}

TEST(PartitionExact, RefusesMoreStagesThanLayersAndNone) {
  const std::vector<Nanoseconds> cost{1, 2};
  EXPECT_THROW(partition_exact(cost, 3), InvalidInput);
  EXPECT_THROW(partition_exact(cost, 0), InvalidInput);
}

TEST(PartitionPipeTransformerGreedy, GivesThePublishedStagesOfViT) {
  const auto vit = test::vit_base_sizes();
  EXPECT_THAT(stage_lengths(partition_pipetransformer_greedy(vit, 8)), ElementsAre(4, 2, 3, 3, 3, 3, 4, 5));
  const Partition four = partition_pipetransformer_greedy(vit, 4);
  EXPECT_THAT(stage_lengths(four), ElementsAre(7, 6, 6, 8));
  EXPECT_THAT(stage_sums(vit, four), Pointwise(DoubleNear(0.0015), {22.006, 21.264, 21.264, 22.034}));
}

TEST(PartitionPipeTransformerGreedy, LeavesStagesEmptyAsPublished) {
  EXPECT_THAT(stage_lengths(partition_pipetransformer_greedy(test::bert_base_sizes(), 8)),
              ElementsAre(0, 0, 0, 1, 6, 6, 6, 7));
}

TEST(PartitionPipeTransformerGreedy, IsNeverBetterThanTheExactOne) {
  std::mt19937 random(6);
  for (int round = 0; round < 2000; ++round) {
    const int n = 1 + static_cast<int>(random() % 20);
    const int stages = 1 + static_cast<int>(random() % n);
    std::vector<Nanoseconds> cost(n);
    for (auto& one : cost) one = 1 + random() % 1000;
    std::vector<double> in_millions;
    for (const Nanoseconds one : cost) in_millions.push_back(static_cast<double>(one) / 100);
    const Partition greedy = partition_pipetransformer_greedy(in_millions, stages);
    ASSERT_EQ(static_cast<int>(greedy.size()), stages);
    for (int stage = 0; stage < stages; ++stage) {
      EXPECT_EQ(greedy[stage].begin, stage == 0 ? 0 : greedy[stage - 1].end);
      EXPECT_LE(greedy[stage].begin, greedy[stage].end);
    }
    EXPECT_EQ(greedy.back().end, n);
    const auto exact_sums = stage_sums(cost, partition_exact(cost, stages));
    const auto greedy_sums = stage_sums(cost, greedy);
    EXPECT_LE(*std::max_element(exact_sums.begin(), exact_sums.end()),
              *std::max_element(greedy_sums.begin(), greedy_sums.end()));
  }
}

TEST(PartitionPipeTransformerGreedy, RefusesNoStages) {
  EXPECT_THROW(partition_pipetransformer_greedy(test::vit_base_sizes(), 0), InvalidInput);
}

}  // namespace
}  // namespace frostpipe
