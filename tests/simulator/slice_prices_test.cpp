// Costs of token slices in ProfileCostModel. Oracle: sums by hand, whose digits show what they consist of.
#include <gtest/gtest.h>

#include "simulator/cost_model.h"
#include "tests/support/synthetic_profile.h"

namespace frostpipe {
namespace {

using test::free_cluster;
using test::synthetic_profile;
using test::SyntheticLayer;

/// Layers 0..3 are embedding, attention, MLP, head. The digits show what a time consists of: forward 1, input gradient
/// 10, weight gradient 100, all times 1 + layer.
Profile digits_by_context() {
  std::vector<SyntheticLayer> layers;
  for (int layer = 0; layer < 4; ++layer)
    layers.push_back({.forward_ns = layer + 1,
                      .input_gradient_ns = 10 * (layer + 1),
                      .weight_gradient_ns = 100 * (layer + 1),
                      .output_activation_bytes = layer + 1});
  return synthetic_profile(1, layers);
}

Phase two_sliced_stages() {
  Phase phase;
  phase.layout.pipeline_parallel_size = 2;
  phase.partition = {{0, 2}, {2, 4}};
  phase.num_micro_batches = 2;
  phase.tokens = test::kSyntheticTokens;
  return phase;
}

Nanoseconds compute_ns(const CostModel& costs, const std::string& action, int pipeline_rank) {
  return costs.segments(parse_action(action, "test"), pipeline_rank, 0).at(0).duration_ns;
}

TEST(SlicePrices, AreTheShareOfTheTokens) {
  const Profile profile = digits_by_context();
  Phase phase = two_sliced_stages();
  phase.schedule = "TeraPipe";
  phase.token_slices = {2, 5, 4};  // the last slice has 1 of the mean sample's 8 tokens
  Cluster cluster = free_cluster(2);
  cluster.intra_node.point_to_point = {.latency_ns = 7, .bandwidth_bytes_per_second = 1'000'000'000};
  const ProfileCostModel costs(phase, {.global_batch_size = 16}, profile, cluster);
  EXPECT_EQ(compute_ns(costs, "0F0s0", 0), 2 * (1 + 2));
  EXPECT_EQ(compute_ns(costs, "0F0s1", 0), 5 * (1 + 2));
  EXPECT_EQ(compute_ns(costs, "1F1s2", 1), 1 * (3 + 4));
  EXPECT_EQ(compute_ns(costs, "1B0s1", 1), 5 * (30 + 40 + 300 + 400));
  const TransferCost sent = costs.transfer(parse_action("0SEND_F0s1", "test"), 0);
  EXPECT_EQ(sent.latency_ns, 7);
  EXPECT_EQ(sent.occupancy_ns, 5 * 2);
  phase.token_slices = {2, 6, 4};  // the last slice has none
  const ProfileCostModel none_in_the_last(phase, {.global_batch_size = 16}, profile, cluster);
  EXPECT_EQ(compute_ns(none_in_the_last, "0F0s2", 0), 0);
  EXPECT_EQ(none_in_the_last.transfer(parse_action("0SEND_F0s2", "test"), 0).latency_ns, 0);
}

/// A slice of l tokens after c others takes 5 + 3 l + 2 c + l c times the layer's digits.
TEST(SlicePrices, AreByLengthAndContextWhereTheyWereMeasured) {
  const test::SliceTimes times{.a0 = 5, .a1 = 3, .a2 = 2, .a3 = 1};
  const Profile profile = test::with_slices(digits_by_context(), times);
  Phase phase = two_sliced_stages();
  phase.schedule = "TeraPipe";
  phase.token_slices = {3, 1, 2, 4};  // the last slice has 2 of the mean sample's 8 tokens
  Cluster cluster = free_cluster(2);
  cluster.intra_node.point_to_point = {.latency_ns = 7, .bandwidth_bytes_per_second = 1'000'000'000};
  const ProfileCostModel costs(phase, {.global_batch_size = 4}, profile, cluster);
  int context = 0;
  for (const auto& [slice, length] : {std::pair{0, 3}, {1, 1}, {2, 2}, {3, 2}}) {
    const std::string suffix = "0s" + std::to_string(slice);
    EXPECT_EQ(compute_ns(costs, "0F" + suffix, 0), 2 * (1 + 2) * times.at(length, context)) << slice;
    EXPECT_EQ(compute_ns(costs, "1B" + suffix, 1), 2 * (30 + 40 + 300 + 400) * times.at(length, context));
    EXPECT_EQ(costs.transfer(parse_action("0SEND_F" + suffix, "test"), 0).occupancy_ns, 2 * 2 * length);
    context += length;
  }
  phase.token_slices.clear();
  const ProfileCostModel whole(phase, {.global_batch_size = 4}, profile, cluster);
  EXPECT_EQ(compute_ns(whole, "0F0", 0), 2 * (1 + 2) * times.at(8, 0));
}

/// The frozen forward of layers 0 and 1 is 1000 (1 + layer). A cache entry of 8 tokens with 4 float32 values each is
/// read in 10 + 128 ns and written in 20 + 64.
TEST(SlicePrices, OfACacheAreOfWholeSamplesBeforeTheFirstSliceAndAfterTheLast) {
  std::vector<SyntheticLayer> layers;
  for (int layer = 0; layer < 4; ++layer) layers.push_back({.frozen_forward_ns = 1000 * (layer + 1)});
  Profile profile = synthetic_profile(1, layers);
  profile.model.is_causal = true;
  profile.cache = CacheSpeed{.read = {10, 1'000'000'000}, .write = {20, 2'000'000'000}};
  Phase phase = two_sliced_stages();
  phase.schedule = "TeraPipe";
  phase.token_slices = {2, 6, 4};  // the last slice has none of the mean sample's 8 tokens
  phase.first_trainable_layer = 2;
  phase.cache = {.on = true, .found = {{1, 0.25}, {2, 0.5}}};
  const ProfileCostModel costs(phase, {.global_batch_size = 8}, profile, free_cluster(2));
  // One of 4 samples is computed from the start, and 2 in layer 1.
  EXPECT_EQ(compute_ns(costs, "0F0s0", 0), (1 * 1000 + 2 * 2000) * 2 / 8);
  EXPECT_EQ(compute_ns(costs, "0F0s1", 0), (1 * 1000 + 2 * 2000) * 6 / 8);
  EXPECT_EQ(compute_ns(costs, "0CACHE_READ0s0", 0), 3 * (10 + 128));
  EXPECT_EQ(compute_ns(costs, "0CACHE_READ0s1", 0), 0);
  EXPECT_EQ(compute_ns(costs, "0CACHE_WRITE0s0", 0), 0);
  EXPECT_EQ(compute_ns(costs, "0CACHE_WRITE0s1", 0), 2 * (20 + 64));
}

}  // namespace
}  // namespace frostpipe
