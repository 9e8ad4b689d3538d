#include "profiles/estimates/estimate.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"
#include "profiles/transformer/families.h"
#include "tests/profiles/estimates/small_experts.h"
#include "tests/support/published_sizes.h"

namespace frostpipe {
namespace {

/// In millions, from embedding to head. The norms that the paper counts separately belong to our layers.
std::vector<double> sizes(const std::string& name) {
  std::vector<double> sizes;
  for (const Layer& layer : estimate(find_model(name, 0), {}).profile.model.layers)
    sizes.push_back(static_cast<double>(layer.parameter_count) / 1e6);
  return sizes;
}

TEST(Estimate, ParametersAreThePapers) {
  // He et al. 2021: ViT-B/16 86.5677 M in all, BERT-large 334.09 M; unit by unit to the paper's rounding.
  const auto total = [](const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0);
  };
  EXPECT_NEAR(total(sizes("vit-b16")), total(test::vit_base_sizes()), 0.01);
  EXPECT_NEAR(total(sizes("bert-large")), total(test::bert_large_sizes()), 0.1);
  EXPECT_NEAR(sizes("vit-b16")[0], 0.743, 0.001);
  EXPECT_NEAR(sizes("vit-b16")[1], 2.364, 0.001);
  EXPECT_NEAR(sizes("vit-b16")[2], 4.724, 0.001);
  EXPECT_NEAR(sizes("bert-large")[1], 4.200, 0.005);
  EXPECT_NEAR(sizes("bert-large")[2], 8.400, 0.005);
}

TEST(Estimate, ForwardOfViTBaseIsItsPublishedWork) {
  // Dosovitskiy et al. 2021 and the usual counters: 17.6 G multiply-adds counted once each... 35.2 GFLOP as two
  // operations per multiply-add.
  EstimateOptions options;
  options.rates = {.flops_per_second = 1e9, .bytes_per_second = 1e30, .overhead_ns = 0};  // 1 ns is 1 FLOP
  options.global_batch_size = 1;
  const Estimate made = estimate(find_model("vit-b16", 0), options);
  double flops = 0;
  for (const Measurement& one : made.profile.measurements) flops += static_cast<double>(one.cost.forward_ns);
  EXPECT_NEAR(flops, 35.2e9, 0.3e9);
}

/// NVLink 3 has 600 GB/s in both directions together, a DGX A100 a card of 200 Gbit/s for each device.
TEST(Estimate, HasTheLinksOfTheHardwaresServers) {
  EstimateOptions options{.dtype = DType::kBFloat16};
  apply(find_hardware("A100"), options);
  const Estimate made = estimate(find_model("bert-large", 0), options);
  EXPECT_EQ(made.cluster.intra_node.point_to_point.bandwidth_bytes_per_second, 240'000'000'000);
  EXPECT_EQ(made.cluster.inter_node.collective.bandwidth_bytes_per_second, 20'000'000'000);
  EXPECT_EQ(made.cluster.devices.front().type, "A100");
}

/// Values of half the size, and fifteen times the rate: 202.8 and 13.65 TFLOP/s.
TEST(Estimate, InBfloat16ActivationsAreHalfAsLarge) {
  EstimateOptions options{.global_batch_size = 1};
  apply(find_hardware("A100"), options);
  const Profile in_float32 = estimate(find_model("bert-large", 0), options).profile;
  options.dtype = DType::kBFloat16;
  apply(find_hardware("A100"), options);
  const Profile in_bfloat16 = estimate(find_model("bert-large", 0), options).profile;
  ASSERT_EQ(in_float32.measurements.size(), in_bfloat16.measurements.size());
  for (std::size_t i = 0; i < in_float32.measurements.size(); ++i) {
    const Measurement &whole = in_float32.measurements[i], &half = in_bfloat16.measurements[i];
    EXPECT_EQ(half.key.dtype, DType::kBFloat16);
    EXPECT_EQ(whole.cost.saved_activation_bytes, 2 * half.cost.saved_activation_bytes);
    const auto without_overhead = [](const Measurement& one) {
      return static_cast<double>(one.cost.split_backward->weight_ns - DeviceRates().overhead_ns);
    };
    EXPECT_NEAR(without_overhead(whole) * 13.65, without_overhead(half) * 202.8, 300.0);
  }
}

TEST(Estimate, IsAProfileLikeAnyOther) {
  EstimateOptions options;
  options.num_nodes = 2;
  options.ranks_per_node = 4;
  options.memory_limit_bytes = Bytes{15} << 30;
  const Estimate made = estimate(find_model("bert-large", 0), options);
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

/// One block with two heads, hidden size 8, and a vocabulary of 100.
EstimatedModel small_gpt2(int tokens) {
  TransformerConfig config = described(Family::gpt2);
  config.hidden_size = 8;
  config.num_hidden_layers = 1;
  config.num_attention_heads = 2;
  config.intermediate_size = 32;
  config.vocab_size = 100;
  config.max_position_embeddings = 50;
  return {"small", config, tokens};
}

/// A causal model of 64 tokens on a device where an operation takes a nanosecond and starting a kernel takes none.
Profile causal_estimate() {
  EstimateOptions options;
  options.rates = {.flops_per_second = 1e9, .bytes_per_second = 1e30, .overhead_ns = 0};
  options.global_batch_size = 2;
  return estimate(small_gpt2(64), options).profile;
}

LayerCost slice_cost(const Profile& profile, int layer, int tokens, int context) {
  return *cost_of_slice(
      profile,
      {.layer = layer, .device_type = "estimated", .micro_batch_size = 2, .tokens = tokens, .context_tokens = context});
}

/// Oracle: pairs of query and key counted one by one with 4 h operations each, plus 8 h^2 per token for the
/// projections. A pair's backward has five products for the forward's two,
/// none of which is a weight's gradient.
TEST(Estimate, ATokenSliceLooksAtItselfAndWhatIsBeforeIt) {
  const Profile profile = causal_estimate();
  EXPECT_TRUE(profile.model.is_causal);
  for (const auto& [tokens, context] :
       {std::pair{8, 0}, {8, 8}, {8, 24}, {16, 16}, {16, 48}, {32, 0}, {32, 32}, {64, 0}}) {
    std::int64_t pairs = 0;
    for (int query = context; query < context + tokens; ++query)
      for (int key = 0; key <= query; ++key) ++pairs;
    const Nanoseconds projections = 2 * tokens * 8 * 8 * 8, of_pairs = 2 * pairs * 4 * 8;
    const LayerCost cost = slice_cost(profile, 1, tokens, context);
    EXPECT_EQ(cost.forward_ns, projections + of_pairs) << tokens << " after " << context;
    EXPECT_EQ(cost.input_gradient_ns, projections);
    EXPECT_EQ(cost.weight_gradient_ns, projections + of_pairs * 5 / 2) << "they need the gradients of queries and keys";
    EXPECT_EQ(cost.split_backward->input_ns, projections + of_pairs * 5 / 2);
    EXPECT_EQ(cost.split_backward->weight_ns, projections);
    EXPECT_EQ(slice_cost(profile, 2, tokens, context).forward_ns, 2 * tokens * 4 * 8 * 32) << "no attention";
  }
  const LayerCost head = slice_cost(profile, 3, 64, 0);
  EXPECT_EQ(head.split_backward->input_ns, 2 * head.forward_ns)
      << "logits are computed in parts, all in the first half";
  EXPECT_EQ(head.split_backward->weight_ns, 0);
  EXPECT_EQ(profile_from_json(to_json(profile), "estimate"), profile) << "in the order of keys";
}

TEST(Estimate, SlicesOfASampleHaveItsOperations) {
  const Profile profile = causal_estimate();
  for (const std::vector<int>& slices : {std::vector{32, 32}, {32, 16, 8, 8}, {16, 16, 16, 16}, {8, 8, 16, 32}})
    for (int layer = 0; layer < 4; ++layer) {
      Nanoseconds sum = 0;
      int context = 0;
      for (const int tokens : slices) {
        sum += slice_cost(profile, layer, tokens, context).forward_ns;
        context += tokens;
      }
      EXPECT_EQ(sum, slice_cost(profile, layer, 64, 0).forward_ns) << "layer " << layer;
    }
}

/// 1000 tokens of hidden size 8, each of which attends to all: an activation has 32,000 bytes.
EstimatedModel small_model() {
  EstimatedModel model = small_gpt2(1000);
  model.config.is_causal = false;
  return model;
}

/// On four tensor ranks, with one sample, on a device that computes in no time.
Profile of_four_tensor_ranks(const EstimatedModel& model, bool sequence_parallel = false,
                             double flops_per_second = 1e30) {
  EstimateOptions options;
  options.rates = {.flops_per_second = flops_per_second, .bytes_per_second = 1e30, .overhead_ns = 0};
  options.global_batch_size = 1;
  options.tensor_parallel_sizes = {4};
  options.sequence_parallel = sequence_parallel;
  return estimate(model, options).profile;
}

/// Oracle: each all-reduce takes 10 us + 2 (4 - 1) / 4 x bytes / 10 GB/s: 14,800 ns for an activation, 10,600 for a
/// number per token.
TEST(Estimate, TensorRanksSumWhatMegatronSums) {
  constexpr Nanoseconds kActivation = 10'000 + 4'800, kTokens = 10'000 + 600;
  const Profile profile = of_four_tensor_ranks(small_model());
  const auto cost = [&](int layer) { return profile.measurements.at(layer).cost; };
  EXPECT_EQ(cost(0).forward_ns, kActivation) << "rows of the table that other ranks have";
  EXPECT_EQ(cost(0).input_gradient_ns, 0);
  for (const int half : {1, 2}) {
    EXPECT_EQ(cost(half).forward_ns, kActivation);
    EXPECT_EQ(cost(half).input_gradient_ns, kActivation);
  }
  EXPECT_EQ(cost(3).forward_ns, 3 * kTokens) << "the loss: maximum, sum of exponentials, target's logit";
  EXPECT_EQ(cost(3).input_gradient_ns, kActivation);
  for (int layer = 0; layer < 4; ++layer) {
    EXPECT_EQ(cost(layer).frozen_forward_ns, cost(layer).forward_ns);
    EXPECT_EQ(cost(layer).split_backward->input_ns, cost(layer).input_gradient_ns);
    EXPECT_EQ(cost(layer).weight_gradient_ns, 0);
    EXPECT_EQ(cost(layer).split_backward->weight_ns, 0);
  }
}

/// Oracle: by hand, each all-gather and reduce-scatter takes 10 us + (4 - 1) / 4 x 32,000 bytes / 10 GB/s, and of the
/// [tokens, hidden] around a layer a quarter is saved.
TEST(Estimate, SequenceParallelismSavesAPartAndGathersOnceMore) {
  constexpr Nanoseconds kHalf = 10'000 + 2'400, kTokens = 10'000 + 600;
  constexpr Bytes kActivation = 4 * 1000 * 8;
  const Profile profile = of_four_tensor_ranks(small_model(), /*sequence_parallel=*/true);
  const auto cost = [&](int layer, bool split) {
    return cost_of(profile, {.layer = layer,
                             .device_type = "estimated",
                             .tokens = 1000,
                             .tensor_parallel_size = 4,
                             .sequence_parallel = split});
  };
  EXPECT_EQ(cost(0, true).forward_ns, kHalf);
  EXPECT_EQ(cost(0, true).weight_gradient_ns, kHalf) << "the gradient of its rows";
  for (const int half : {1, 2}) {
    EXPECT_EQ(cost(half, true).forward_ns, 2 * kHalf);
    EXPECT_EQ(cost(half, true).input_gradient_ns, kHalf);
    EXPECT_EQ(cost(half, true).weight_gradient_ns, 2 * kHalf);
    EXPECT_EQ(cost(half, true).split_backward->input_ns, 2 * kHalf);
    EXPECT_EQ(cost(half, true).split_backward->weight_ns, kHalf);
    EXPECT_EQ(cost(half, true).output_activation_bytes, kActivation / 4);
    EXPECT_EQ(cost(half, false).saved_activation_bytes - cost(half, true).saved_activation_bytes,
              (2 * kActivation + 2 * 4 * 1000) * 3 / 4)
        << "the norm's output, means and deviations, and the layer's output";
    EXPECT_EQ(cost(half, false).split_backward->kept_bytes - cost(half, true).split_backward->kept_bytes,
              kActivation * 3 / 4);
  }
  EXPECT_EQ(cost(3, true).forward_ns, kHalf + 3 * kTokens);
  EXPECT_EQ(cost(3, true).weight_gradient_ns, kHalf);
  EXPECT_EQ(profile_from_json(to_json(profile), "estimate"), profile);
}

/// Oracle: worked by hand for GPT-2's MLP of hidden size 8 and width 32, in float32: of each token 8 + 8 + 2 x 32
/// values and two numbers of the norm are kept, so a forward moves 1.5 x 82 x 4 bytes, at a byte per nanosecond.
TEST(Estimate, OperationsWithoutProductsTakeTheTimeOfTheirBytes) {
  EstimateOptions options;
  options.rates = {.flops_per_second = 1e30, .bytes_per_second = 1e9, .overhead_ns = 0};
  options.global_batch_size = 1;
  const Profile profile = estimate(small_model(), options).profile;
  const LayerCost cost = cost_of(profile, {.layer = 2, .device_type = "estimated", .tokens = 1000});
  constexpr Nanoseconds kForward = 1000 * 82 * 4 * 3 / 2;
  EXPECT_EQ(cost.forward_ns, kForward);
  EXPECT_EQ(cost.input_gradient_ns, 0);
  EXPECT_EQ(cost.weight_gradient_ns, 2 * kForward);
  EXPECT_EQ(cost.split_backward->input_ns, 2 * kForward);
  EXPECT_EQ(cost.split_backward->weight_ns, 0);
}

/// Oracle: the error message.
TEST(Estimate, ExpertsAreSharedOutEvenly) {
  EstimateOptions options;
  options.expert_parallel_size = 3;
  const auto refusal = [&](const EstimatedModel& model) -> std::string {
    try {
      estimate(model, options);
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(refusal(test::small_experts()), "--expert-parallel: must divide the 4 experts of small, is 3");
  EXPECT_EQ(refusal(small_model()), "--expert-parallel: must be 1: small has no experts, is 3");
}

/// Oracle: Megatron-LM's list of partitioned parameters, counted by hand.
TEST(Estimate, TensorRanksHoldTheirPartsOfTablesHeadAndLogits) {
  const Profile profile = of_four_tensor_ranks(small_model());
  const auto& layers = profile.model.layers;
  EXPECT_EQ(layers[0].whole_parameter_count, 50 * 8) << "positions";
  for (const int half : {1, 2}) EXPECT_EQ(layers[half].whole_parameter_count, 8 + 2 * 8) << "bias, norm";
  EXPECT_EQ(layers[3].whole_parameter_count, 2 * 8) << "the norm before it";
  EXPECT_EQ(profile.measurements[3].cost.output_activation_bytes, 0) << "a loss";
  EXPECT_EQ(profile.measurements[3].cost.saved_activation_bytes, 4 * (1000 * 8 + 1000 * 2)) << "its normed input";
  EXPECT_EQ(profile.measurements[3].cost.split_backward->kept_bytes, 0);
  EXPECT_EQ(profile.measurements[3].cost.workspace_bytes, 4 * (2 * 1000 * 8 + 2 * 250 * 100 / 4))
      << "logits and their gradient for 4 equal parts of the tokens, one at a time";
}

/// Oracle: by hand; nothing of image embeddings and small heads is partitioned, so nothing is all-reduced.
TEST(Estimate, TensorRanksHaveProjectionsOfImagesAndSmallHeadsWhole) {
  TransformerConfig images = described(Family::vit);
  images.hidden_size = 8;
  images.num_hidden_layers = 1;
  images.num_attention_heads = 2;
  images.intermediate_size = 32;
  images.num_labels = 100;
  const Profile profile = of_four_tensor_ranks({"images", images, 197}, false, 1e9);  // an operation takes 1 ns
  EXPECT_EQ(profile.measurements[0].cost.forward_ns, 2 * 196 * (16 * 16 * 3) * 8);
  EXPECT_EQ(profile.measurements[3].cost.forward_ns, 2 * 8 * 100);
  EXPECT_EQ(profile.measurements[3].cost.input_gradient_ns, 2 * 8 * 100) << "no sum";
  EXPECT_EQ(profile.measurements[3].cost.output_activation_bytes, 0) << "a loss";
  for (const int end : {0, 3})
    EXPECT_EQ(profile.model.layers[end].whole_parameter_count, profile.model.layers[end].parameter_count);
}

}  // namespace
}  // namespace frostpipe
