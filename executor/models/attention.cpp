#include "executor/models/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <limits>
#include <optional>

#include "executor/models/attention_groups.h"
#include "executor/models/collectives/collectives.h"
#include "executor/models/sliced_attention.h"

namespace frostpipe {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::tensor_list;
using torch::autograd::variable_list;

/// Of one group, [samples, heads, queries or tokens, size]
struct Heads {
  at::Tensor query, key, value;
};

/// Heads of an AttentionInput; tensor ranks have some of the model's each.
std::int64_t num_heads_of(const TransformerConfig& config, const AttentionInput& input) {
  const std::int64_t size = config.hidden_size / config.num_attention_heads;
  return input.query.size(1) / size / (input.key_value.defined() ? 1 : 3);
}

/// Views of a group's rows of an AttentionInput.
Heads heads_of(const AttentionInput& rows, const EqualLengths& group, std::int64_t num_heads) {
  const auto by_head = [&](const at::Tensor& tensor, std::int64_t length, std::int64_t parts) {
    return tensor.view({group.samples, length, parts, num_heads, tensor.size(1) / parts / num_heads})
        .permute({2, 0, 3, 1, 4})
        .unbind();
  };
  if (!rows.key_value.defined()) {
    const std::vector<at::Tensor> all = by_head(rows.query, group.length, 3);
    return {all[0], all[1], all[2]};
  }
  const std::vector<at::Tensor> both = by_head(rows.key_value, group.length, 2);
  return {by_head(rows.query, 1, 1)[0], both[0], both[1]};
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

/// What of a packed input or output belongs to a group.
AttentionInput rows_of(const AttentionInput& input, const EqualLengths& group) {
  if (!input.key_value.defined()) return {input.query.narrow(0, group.first_token, group.tokens())};
  return {input.query.narrow(0, group.first_sample, group.samples),
          input.key_value.narrow(0, group.first_token, group.tokens())};
}

at::Tensor output_of(const at::Tensor& output, bool has_one_query, const EqualLengths& group, std::int64_t num_heads) {
  const at::Tensor rows = has_one_query ? output.narrow(0, group.first_sample, group.samples)
                                        : output.narrow(0, group.first_token, group.tokens());
  return rows.view({group.samples, -1, num_heads, output.size(1) / num_heads}).transpose(1, 2);
}

struct PackedAttention : Function<PackedAttention> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& query,
                            const std::optional<at::Tensor>& key_value, const std::vector<std::int64_t>& lengths,
                            std::int64_t num_heads, bool is_causal) {
    const AttentionInput input{query, key_value.value_or(at::Tensor())};
    const std::vector<EqualLengths> groups = groups_of(lengths);
    const std::int64_t hidden = key_value ? query.size(1) : query.size(1) / 3;
    const at::Tensor output = at::empty({query.size(0), hidden}, query.options().requires_grad(false));
    variable_list saved(groups.size());
    for_groups(groups, [&](int i) {
      const Heads heads = heads_of(rows_of(input, groups[i]), groups[i], num_heads);
      const auto [mixed, log_sum] = at::_scaled_dot_product_flash_attention_for_cpu(heads.query, heads.key, heads.value,
                                                                                    /*dropout_p=*/0.0, is_causal);
      output_of(output, key_value.has_value(), groups[i], num_heads).copy_(mixed);
      saved[i] = log_sum;
    });
    saved.insert(saved.end(), {query, input.key_value, output});
    context->save_for_backward(saved);
    context->saved_data["lengths"] = lengths;
    context->saved_data["num_heads"] = num_heads;
    context->saved_data["is_causal"] = is_causal;
    return output;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const std::vector<EqualLengths> groups = groups_of(context->saved_data["lengths"].toIntVector());
    const std::int64_t num_heads = context->saved_data["num_heads"].toInt();
    const bool is_causal = context->saved_data["is_causal"].toBool();
    const std::size_t count = groups.size();
    const AttentionInput input{saved[count], saved[count + 1]};
    const bool has_one_query = input.key_value.defined();
    const at::Tensor output = saved[count + 2], output_gradient = gradients[0].contiguous();
    const AttentionInput gradient{at::empty_like(input.query),
                                  has_one_query ? at::empty_like(input.key_value) : at::Tensor()};
    for_groups(groups, [&](int i) {
      const EqualLengths& group = groups[i];
      const Heads heads = heads_of(rows_of(input, group), group, num_heads);
      const auto [query, key, value] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
          output_of(output_gradient, has_one_query, group, num_heads), heads.query, heads.key, heads.value,
          output_of(output, has_one_query, group, num_heads), saved[i], /*dropout_p=*/0.0, is_causal);
      const Heads into = heads_of(rows_of(gradient, group), group, num_heads);
      into.query.copy_(query);
      into.key.copy_(key);
      into.value.copy_(value);
    });
    return {gradient.query, gradient.key_value, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

/// Some rows of a stacked matrix, or some values of a bias.
Parameter part_of(const Parameter& parameter, std::int64_t begin, std::int64_t count) {
  const auto narrowed = [&](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.narrow(0, begin, count) : tensor;
  };
  return {narrowed(parameter.value), narrowed(parameter.gradient)};
}

}  // namespace

std::vector<EqualLengths> groups_of(const std::vector<std::int64_t>& lengths) {
  std::vector<EqualLengths> groups;
  for (std::size_t sample = 0; sample < lengths.size(); ++sample) {
    if (groups.empty() || groups.back().length != lengths[sample]) {
      const std::int64_t first_token = groups.empty() ? 0 : groups.back().first_token + groups.back().tokens();
      groups.push_back({static_cast<std::int64_t>(sample), 0, lengths[sample], first_token});
    }
    ++groups.back().samples;
  }
  return groups;
}

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
  return input.query.is_cpu() && !drops ? attend_in_one(config, input, batch, is_causal)
                                        : attend_by_autograd(config, layer, input, batch, is_causal);
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
  const bool has_one_query = input.key_value.defined();
  const std::vector<at::Tensor> queries = input.query.split_with_sizes(has_one_query ? samples : tokens);
  const std::vector<at::Tensor> others =
      has_one_query ? input.key_value.split_with_sizes(tokens) : std::vector<at::Tensor>(groups.size());
  std::vector<at::Tensor> parts;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Heads heads = heads_of({queries[i], others[i]}, groups[i], num_heads_of(config, input));
    parts.push_back(joined(attend_group(config, heads, groups[i], dropout, is_causal)));
  }
  return parts.size() == 1 ? parts.front() : at::cat(parts);
}

at::Tensor attend_in_one(const TransformerConfig& config, const AttentionInput& input, const MicroBatch& batch,
                         bool is_causal) {
  const auto key_value = input.key_value.defined() ? std::optional(input.key_value) : std::nullopt;
  return PackedAttention::apply(input.query, key_value, batch.lengths, num_heads_of(config, input), is_causal);
}

}  // namespace frostpipe
