#include "executor/models/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "executor/models/collectives/collectives.h"
#include "executor/models/packed_attention.h"
#include "executor/models/sliced_attention.h"

namespace frostpipe {
namespace {

/// Heads of an AttentionInput; tensor ranks have some of the model's each.
std::int64_t num_heads_of(const TransformerConfig& config, const AttentionInput& input) {
  const std::int64_t size = config.hidden_size / config.num_attention_heads;
  return input.query.size(1) / size / (input.key_value.defined() ? 1 : 3);
}

/// Of one group: [samples, heads, queries, size] -> [samples x queries, hidden]
at::Tensor joined(const at::Tensor& heads) {
  return heads.transpose(1, 2).reshape({-1, heads.size(1) * heads.size(3)});
}

/// What is dropped of attention's weights.
struct AttentionDropout {
  int layer = 0;
  std::int64_t first_head = 0;
  at::Tensor keys;  // of the batch's samples; undefined: nothing is dropped
};

at::Tensor attend_group(const TransformerConfig& config, const Heads& heads, const EqualLengths& group,
                        const AttentionDropout& dropout, bool is_causal) {
  if (!dropout.keys.defined() || config.dropout == 0)
    return at::scaled_dot_product_attention(heads.query, heads.key, heads.value, /*attn_mask=*/{}, /*dropout_p=*/0.0,
                                            is_causal);
  at::Tensor scores =
      at::matmul(heads.query, heads.key.transpose(2, 3)) / std::sqrt(static_cast<double>(heads.query.size(3)));
  if (is_causal) {
    const at::Tensor later = at::ones({group.length, group.length}, scores.options().dtype(at::kBool)).triu(1);
    scores = scores.masked_fill(later, -std::numeric_limits<double>::infinity());
  }
  const at::Tensor keys = dropout.keys.narrow(0, group.first_sample, group.samples);
  return at::matmul(drop_attention(config, dropout.layer, scores.softmax(-1), keys, dropout.first_head), heads.value);
}

/// Some rows of a stacked matrix, or some values of a bias.
Parameter part_of(const Parameter& parameter, std::int64_t begin, std::int64_t count) {
  const auto narrowed = [&](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.narrow(0, begin, count) : tensor;
  };
  return {narrowed(parameter.value), narrowed(parameter.gradient)};
}

}  // namespace

AttentionInput attention_input(const TransformerConfig& config, const at::Tensor& x, const Parameter& weight,
                               const Parameter& bias, const NeededTokens& needed) {
  const RankRows& rows = needed.rows_of_all();
  const std::int64_t first_head = slice_of(rows.ranks).begin_in(config.num_attention_heads);
  if (needed.all()) return {.query = project_columns(x, weight, bias, rows), .first_head = first_head};
  const std::int64_t hidden = weight.value.size(0) / 3;
  const Parameter query = part_of(weight, 0, hidden), query_bias = part_of(bias, 0, hidden),
                  others = part_of(weight, hidden, 2 * hidden), others_bias = part_of(bias, hidden, 2 * hidden);
  if (rows.are_split())
    return {.query = project_columns(needed.of(x), query, query_bias, needed.rows()),
            .key_value = project_columns(x, others, others_bias, rows),
            .first_head = first_head};
  const at::Tensor copied = copy_to(rows.ranks, x);  // once: one sum for both products
  return {.query = project(needed.of(copied), query, query_bias),
          .key_value = project(copied, others, others_bias),
          .first_head = first_head};
}

at::Tensor attend(const TransformerConfig& config, int layer, const AttentionInput& input, const MicroBatch& batch,
                  bool is_causal) {
  if (batch.sliced) return attend_slice(config, layer, input, batch);
  if (input.key_value.defined()) is_causal = false;  // one token sees its whole sample, the last one of GPT-2's too
  const bool drops = batch.dropout_keys.defined() && config.dropout > 0;
  const std::int64_t num_heads = num_heads_of(config, input);
  if (input.query.is_cpu() && !drops) return attend_in_one(input, batch.lengths, num_heads, is_causal);
  const bool has_one_length = std::ranges::count(batch.lengths, batch.lengths.front()) == batch.size();
  if (!drops && !has_one_length && has_kernel_for_packed(input, num_heads))
    return attend_by_kernel(input, batch, num_heads, is_causal);
  return attend_by_autograd(config, layer, input, batch, is_causal);
}

at::Tensor attend_by_autograd(const TransformerConfig& config, int layer, const AttentionInput& input,
                              const MicroBatch& batch, bool is_causal) {
  const std::vector<EqualLengths> groups = groups_of(batch.lengths);
  std::vector<std::int64_t> samples, tokens;
  for (const EqualLengths& group : groups) {
    samples.push_back(group.samples);
    tokens.push_back(group.tokens());
  }
  const AttentionDropout dropout{layer, input.first_head, batch.dropout_keys};
  if (groups.size() == 1)  // split, its gradients would be copied together again
    return joined(
        attend_group(config, heads_of(input, groups[0], num_heads_of(config, input)), groups[0], dropout, is_causal));
  const bool has_one_query = input.key_value.defined();
  const std::vector<at::Tensor> queries = input.query.split_with_sizes(has_one_query ? samples : tokens);
  const std::vector<at::Tensor> others =
      has_one_query ? input.key_value.split_with_sizes(tokens) : std::vector<at::Tensor>(groups.size());
  std::vector<at::Tensor> parts;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Heads heads = heads_of({queries[i], others[i]}, groups[i], num_heads_of(config, input));
    parts.push_back(joined(attend_group(config, heads, groups[i], dropout, is_causal)));
  }
  return at::cat(parts);
}

}  // namespace frostpipe
