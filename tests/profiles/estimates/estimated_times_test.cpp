#include <gtest/gtest.h>

#include "profiles/estimates/estimate.h"
#include "profiles/transformer/families.h"
#include "tests/profiles/estimates/small_experts.h"

namespace frostpipe {
namespace {

/// Oracle: Dao 2023 (FlashAttention-2), Table 1: training GPT models of 1.3 and 2.7 billion parameters with
/// FlashAttention-2 on 8 A100 of 80 GB reaches 196 and 205 TFLOP/s per device with 2048 tokens, 220 and 225 with 8192,
/// counted as 6 x parameters x tokens + 12 x layers x hidden x tokens^2.
TEST(Estimate, PassesTakeTheTimeThatPublishedTrainingTakes) {
  struct Row {
    int hidden, layers, tokens;
    double parameters, teraflops;
  };
  for (const Row& row : {Row{2048, 24, 2048, 1.3e9, 196},
                         {2560, 32, 2048, 2.7e9, 205},
                         {2048, 24, 8192, 1.3e9, 220},
                         {2560, 32, 8192, 2.7e9, 225}}) {
    TransformerConfig config = described(Family::gpt2);
    config.hidden_size = row.hidden;
    config.num_hidden_layers = row.layers;
    config.num_attention_heads = row.hidden / 128;
    config.intermediate_size = 4 * row.hidden;
    config.vocab_size = 50257;
    config.max_position_embeddings = 8192;
    EstimateOptions options{.global_batch_size = 1, .dtype = DType::kBFloat16};
    apply(find_hardware("A100-80GB"), options);
    const Profile profile = estimate({"gpt", config, row.tokens}, options).profile;
    double seconds = 0;
    for (int layer = 0; layer < static_cast<int>(profile.model.layers.size()); ++layer) {
      const LayerCost cost = cost_of(
          profile, {.layer = layer, .device_type = "A100-80GB", .dtype = DType::kBFloat16, .tokens = row.tokens});
      const Nanoseconds launches = 3 * options.rates.overhead_ns;  // hidden where a micro-batch has many tokens
      seconds +=
          1e-9 * static_cast<double>(cost.forward_ns + cost.input_gradient_ns + cost.weight_gradient_ns - launches);
    }
    const double flops =
        6 * row.parameters * row.tokens + 12.0 * row.layers * row.hidden * static_cast<double>(row.tokens) * row.tokens;
    EXPECT_NEAR(flops / seconds / 1e12, row.teraflops, 0.03 * row.teraflops) << row.hidden << ", " << row.tokens;
  }
}

/// Oracle: by hand, 1000 tokens of 8 values go to 2 experts each, half of them on another replica. That takes 10 us +
/// 32,000 bytes / 10 GB/s each way; between nodes 20 us and 5 GB/s.
TEST(Estimate, TokensGoToExpertsOfOtherReplicasAndBack) {
  EstimateOptions options;
  options.rates = {.flops_per_second = 1e30, .bytes_per_second = 1e30, .overhead_ns = 0};
  options.global_batch_size = 1;
  options.expert_parallel_size = 2;
  for (const auto& [ranks_per_node, one_way] : {std::pair{2, 10'000 + 3'200}, {1, 20'000 + 6'400}}) {
    options.ranks_per_node = ranks_per_node;
    const Profile profile = estimate(test::small_experts(), options).profile;
    const auto whole = [&](int layer) {
      return cost_of(profile, {.layer = layer, .device_type = "estimated", .tokens = 1000});
    };
    EXPECT_EQ(whole(2).forward_ns, 2 * one_way);
    EXPECT_EQ(whole(2).input_gradient_ns, 2 * one_way);
    EXPECT_EQ(whole(2).split_backward->input_ns, 2 * one_way);
    EXPECT_EQ(whole(2).weight_gradient_ns, 0);
    EXPECT_EQ(whole(1).forward_ns, 0);
    EXPECT_EQ(profile_from_json(to_json(profile), "estimate"), profile);
    options.rates.bytes_per_second = 1e9;
    EXPECT_EQ(estimate(test::small_experts(), options).profile.updates[2].update_ns,
              28 * (4 * 3 * 8 * 32 / 2 + 4 * 8 + 8))
        << "its experts, router and norm";
    options.rates.bytes_per_second = 1e30;
  }
}

/// Oracle: by hand. Of 4 replicas, 2 in each node, a token's values go to one other in the node and to two beyond it:
/// 64,000 x 1/4 bytes at 10 GB/s while 64,000 x 2/4 go at 5 GB/s.
TEST(Estimate, TokensGoToExpertsOverBothKindsOfLinksAtOnce) {
  EstimateOptions options;
  options.rates = {.flops_per_second = 1e30, .bytes_per_second = 1e30, .overhead_ns = 0};
  options.global_batch_size = 1;
  options.expert_parallel_size = 4;
  options.ranks_per_node = 2;
  const Profile profile = estimate(test::small_experts(), options).profile;
  EXPECT_EQ(cost_of(profile, {.layer = 2, .device_type = "estimated", .tokens = 1000}).forward_ns,
            2 * (20'000 + 6'400));
}

}  // namespace
}  // namespace frostpipe
