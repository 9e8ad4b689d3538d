#include "profiles/estimate.h"

#include <gtest/gtest.h>

#include <numeric>

#include "profiles/error.h"
#include "tests/support/published_sizes.h"

namespace frostpipe {
namespace {

const TransformerShape& shape(std::size_t index) { return known_shapes().at(index); }

/// In millions, embedding first, head last; the norms that the paper counts apart belong to our layers.
std::vector<double> sizes(const TransformerShape& shape) {
  std::vector<double> sizes;
  for (const Layer& layer : estimate(shape, {}).profile.model.layers)
    sizes.push_back(static_cast<double>(layer.parameter_count) / 1e6);
  return sizes;
}

TEST(Estimate, ParametersAreThePapers) {
  // He et al. 2021: ViT-B/16 86.5677 M in all, BERT-large 334.09 M; unit by unit to the paper's rounding.
  const auto total = [](const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0);
  };
  EXPECT_NEAR(total(sizes(shape(0))), total(test::vit_base_sizes()), 0.01);
  EXPECT_NEAR(total(sizes(shape(1))), total(test::bert_large_sizes()), 0.1);
  EXPECT_NEAR(sizes(shape(0))[0], 0.743, 0.001);
  EXPECT_NEAR(sizes(shape(0))[1], 2.364, 0.001);
  EXPECT_NEAR(sizes(shape(0))[2], 4.724, 0.001);
  EXPECT_NEAR(sizes(shape(1))[1], 4.200, 0.005);
  EXPECT_NEAR(sizes(shape(1))[2], 8.400, 0.005);
}

TEST(Estimate, ForwardOfViTBaseIsItsPublishedWork) {
  // Dosovitskiy et al. 2021 and the usual counters: 17.6 G multiply-adds counted once each... 35.2 GFLOP as two
  // operations per multiply-add.
  EstimateOptions options;
  options.rates = {.flops_per_second = 1e9, .bytes_per_second = 1, .overhead_ns = 0};  // 1 ns is 1 FLOP
  options.global_batch_size = 1;
  const Estimate made = estimate(shape(0), options);
  double flops = 0;
  for (const Measurement& one : made.profile.measurements) flops += static_cast<double>(one.cost.forward_ns);
  EXPECT_NEAR(flops, 35.2e9, 0.3e9);
}

TEST(Estimate, IsAProfileLikeAnyOther) {
  EstimateOptions options;
  options.num_nodes = 2;
  options.ranks_per_node = 4;
  options.memory_limit_bytes = Bytes{15} << 30;
  const Estimate made = estimate(shape(1), options);
  EXPECT_EQ(profile_from_json(to_json(made.profile), "estimate"), made.profile);
  EXPECT_EQ(cluster_from_json(to_json(made.cluster), "estimate"), made.cluster);
  EXPECT_EQ(made.cluster.devices.size(), 8U);
  EXPECT_EQ(made.cluster.devices[3].node, 0);
  EXPECT_EQ(made.cluster.devices[4].node, 1);
  // Linear in the samples beyond the overhead: a size between two grid lines is exact.
  const auto forward = [&](int size) {
    return cost_of(made.profile, {.layer = 1, .device_type = "estimated", .micro_batch_size = size, .tokens = 384})
        .forward_ns;
  };
  EXPECT_NEAR(static_cast<double>(forward(48)), static_cast<double>(forward(32) + forward(64)) / 2, 1);
}

}  // namespace
}  // namespace frostpipe
