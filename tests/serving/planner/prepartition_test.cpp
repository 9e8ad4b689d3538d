#include "serving/planner/prepartition.h"

#include <gtest/gtest.h>

#include <random>

namespace frostpipe {
namespace {

/// A chain with random times on two types and random cuts.
ServingProfile random_chain(std::mt19937& random, int num_layers) {
  ServingProfile profile{.model_name = "chain", .times = {{.device_type = "fast"}, {.device_type = "slow"}}};
  for (int layer = 0; layer < num_layers; ++layer) {
    profile.block_ends.push_back(layer + 1);
    profile.weight_bytes.push_back(0);
    if (layer > 0) profile.cut_bytes.push_back(1 + random() % 50);
    for (auto& times : profile.times) times.forward_ns.push_back({static_cast<Nanoseconds>(1 + random() % 9)});
  }
  return profile;
}

bool is_within(const BlockTimes& times, int begin, int end, int num_blocks, const BlockBounds& bounds) {
  double part = 0, whole = 0;
  for (int layer = 0; layer < static_cast<int>(times.forward_ns.size()); ++layer) {
    whole += static_cast<double>(times.forward_ns[layer][0]);
    if (begin <= layer && layer < end) part += static_cast<double>(times.forward_ns[layer][0]);
  }
  return part >= bounds.least_share / num_blocks * whole && part <= bounds.max_share / num_blocks * whole;
}

/// Fewest bytes over every way to cut layers [begin, end of the chain) into `num_left` blocks.
std::optional<Bytes> try_all(const ServingProfile& chain, int begin, int num_left, int num_blocks,
                             const BlockBounds& bounds) {
  const int num_layers = frostpipe::num_blocks(chain);
  if (num_left == 0) return begin == num_layers ? std::optional<Bytes>(0) : std::nullopt;
  std::optional<Bytes> best;
  for (int end = begin + 1; end <= num_layers; ++end) {
    bool fits = true;
    for (const auto& times : chain.times) fits = fits && is_within(times, begin, end, num_blocks, bounds);
    if (!fits) continue;
    const auto rest = try_all(chain, end, num_left - 1, num_blocks, bounds);
    if (!rest) continue;
    const Bytes sum = *rest + (end == num_layers ? 0 : chain.cut_bytes[end - 1]);
    if (!best || sum < *best) best = sum;
  }
  return best;
}

TEST(Prepartition, EqualsTheBestOfAllCutsOfSmallChains) {
  std::mt19937 random(7);
  int found = 0, none = 0;
  for (int round = 0; round < 300; ++round) {
    const auto chain = random_chain(random, 4 + static_cast<int>(random() % 6));
    const int num_blocks = 2 + static_cast<int>(random() % 3);
    const BlockBounds bounds{0.5, 1.2 + 0.1 * static_cast<double>(random() % 8)};
    const auto expected = try_all(chain, 0, num_blocks, num_blocks, bounds);
    const auto cut = prepartition_within(chain, num_blocks, bounds);
    ASSERT_EQ(cut.has_value(), expected.has_value());
    (cut ? found : none) += 1;
    if (!cut) continue;
    EXPECT_EQ(cut->cut_bytes, *expected);
    Bytes sum = 0;
    int begin = 0;
    for (const int end : cut->ends) {
      for (const auto& times : chain.times) EXPECT_TRUE(is_within(times, begin, end, num_blocks, bounds));
      if (end < frostpipe::num_blocks(chain)) sum += chain.cut_bytes[end - 1];
      begin = end;
    }
    EXPECT_EQ(sum, cut->cut_bytes);
  }
  EXPECT_GT(found, 50);
  EXPECT_GT(none, 50);
}

TEST(Prepartition, TakesTheTightestBoundsThatCanBeMet) {
  ServingProfile chain{.cut_bytes = {9, 1, 9}, .times = {{.device_type = "a", .forward_ns = {{10}, {10}, {10}, {10}}}}};
  chain.block_ends = {1, 2, 3, 4};
  chain.weight_bytes = {0, 0, 0, 0};
  EXPECT_EQ(prepartition(chain, 2), (Prepartition{.ends = {2, 4}, .bounds = {0.7, 1.3}, .cut_bytes = 1}));
  chain.times[0].forward_ns = {{10}, {10}, {10}, {40}};  // 30 of 70 is 0.86 of a half, 40 is 1.14
  chain.cut_bytes = {1, 2, 9};
  EXPECT_EQ(prepartition(chain, 2).ends, (std::vector<int>{3, 4}));
}

TEST(Prepartition, KeepsLayersThatAreFewerThanBlocks) {
  std::mt19937 random(1);
  EXPECT_EQ(prepartition(random_chain(random, 3), 10).ends, (std::vector<int>{1, 2, 3}));
}

}  // namespace
}  // namespace frostpipe
