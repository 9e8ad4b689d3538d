#include "simulator/replica_wait.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>
#include <vector>

#include "plan/batch.h"
#include "simulator/cost_model.h"
#include "tests/support/synthetic_profile.h"

namespace frostpipe {
namespace {

using test::synthetic_profile;

/// Oracle: the closed forms for two and three, 1 / sqrt(pi) and 3 / (2 sqrt(pi)), and tables for more.
TEST(ExpectedLargestNormal, IsThatOfTables) {
  EXPECT_NEAR(expected_largest_normal(1), 0, 1e-9);
  EXPECT_NEAR(expected_largest_normal(2), 1 / std::sqrt(std::numbers::pi), 1e-9);
  EXPECT_NEAR(expected_largest_normal(3), 1.5 / std::sqrt(std::numbers::pi), 1e-9);
  EXPECT_NEAR(expected_largest_normal(10), 1.53875, 1e-5);
  EXPECT_NEAR(expected_largest_normal(100), 2.50759, 1e-5);
}

constexpr int kBatch = 64, kLongest = 15;

/// Frozen up to the head: 4 blocks, each half of which takes 1,000 ns per sample. Half of the samples are found after
/// two blocks, a quarter in front of the head, the others not at all. Lengths are uniform from 1 to 15 tokens.
struct MostlyCached {
  explicit MostlyCached(int replicas) : profile(synthetic_profile(4, {{.frozen_forward_ns = 1000}})) {
    profile.workload = Workload{.tokens = 8, .tokens_deviation = std::sqrt((kLongest * kLongest - 1) / 12.0)};
    phase.first_trainable_layer = 9;
    phase.partition = {{0, 10}};
    phase.layout.data_parallel_size = replicas;
    phase.tokens = test::kSyntheticTokens;
    phase.cache = {.on = true, .found = {{5, 0.5}, {9, 0.25}}};
  }
  Nanoseconds wait() const { return replica_wait_ns(phase, {.global_batch_size = kBatch}, profile, "cpu"); }
  Phase phase;
  Profile profile;
};

/// Oracle: many random mini-batches, sorted by length as in a run, cut by tokens and summed.
TEST(ReplicaWait, IsThatOfRandomMiniBatches) {
  std::mt19937 random(7);
  for (const int replicas : {2, 4}) {
    constexpr int kBatches = 20'000;
    double waits = 0;
    for (int batch = 0; batch < kBatches; ++batch) {
      std::vector<std::int64_t> lengths(kBatch);
      for (std::int64_t& length : lengths) length = 1 + static_cast<std::int64_t>(random() % kLongest);
      std::sort(lengths.begin(), lengths.end());
      double sum = 0, slowest = 0;
      for (const SampleRange& share : split_by_length(lengths, replicas)) {
        double took = 0;
        for (int sample = share.begin; sample < share.end; ++sample) {
          const unsigned where = random() % 4;
          const int layers = where < 2 ? 4 : where == 2 ? 0 : 9;  // layers left to compute
          took += 1000.0 * layers * static_cast<double>(lengths[sample]) / test::kSyntheticTokens;
        }
        sum += took;
        slowest = std::max(slowest, took);
      }
      waits += slowest - sum / replicas;
    }
    const double mean = waits / kBatches;
    EXPECT_NEAR(static_cast<double>(MostlyCached(replicas).wait()), mean, 0.06 * mean) << replicas;
  }
}

TEST(ReplicaWait, IsNoneIfAllAreAlikeOrNoReplicaWaits) {
  EXPECT_EQ(MostlyCached(1).wait(), 0);
  MostlyCached two(2);
  EXPECT_GT(two.wait(), 0);
  for (const std::vector<CacheFound>& found :
       {std::vector<CacheFound>{}, std::vector<CacheFound>{{5, 1.0}}, std::vector<CacheFound>{{9, 1.0}}}) {
    two.phase.cache.found = found;
    EXPECT_EQ(two.wait(), 0);
  }
  MostlyCached off(2);
  off.phase.cache.on = false;
  EXPECT_EQ(off.wait(), 0);
  MostlyCached stages(2);
  stages.phase.layout.pipeline_parallel_size = 2;
  stages.phase.partition = {{0, 5}, {5, 10}};
  EXPECT_EQ(stages.wait(), 0);
}

/// The reduction is where replicas wait.
TEST(ReplicaWait, IsInTheReductionsTime) {
  MostlyCached two(2);
  two.profile.cache = CacheSpeed{};
  const Cluster cluster = test::free_cluster(2);
  const Action reduction{.kind = ActionKind::reduce_gradient, .stage = 0};
  const auto reduction_ns = [&] {
    return ProfileCostModel(two.phase, {.global_batch_size = kBatch}, two.profile, cluster)
        .segments(reduction, /*pipeline_rank=*/0, /*replica=*/0)
        .front()
        .duration_ns;
  };
  EXPECT_EQ(reduction_ns(), two.wait());
  two.phase.cache.found = {{9, 1.0}};
  EXPECT_EQ(reduction_ns(), 0);
}

}  // namespace
}  // namespace frostpipe
