#include "executor/models/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "executor/device/to_device.h"
#include "executor/models/collectives/collectives.h"
#include "executor/models/norms.h"
#include "executor/models/packed_attention.h"
#include "executor/models/rotary.h"
#include "executor/models/sliced_attention.h"

namespace frostpipe {
namespace {

/// Joins the heads of one group: [samples, heads, queries, size] -> [samples x queries, query values].
at::Tensor joined(const at::Tensor& heads) {
  return heads.transpose(1, 2).reshape({-1, heads.size(1) * heads.size(3)});
}

/// The dropout of attention weights.
struct AttentionDropout {
  int layer = 0;
  std::int64_t first_head = 0;
  at::Tensor keys;  // one per sample of the batch; undefined: no dropout
};

at::Tensor attend_group(const TransformerConfig& config, const AttentionRule& rule, const Heads& heads,
                        const EqualLengths& group, const AttentionDropout& dropout) {
  const bool has_one_query = heads.query.size(2) == 1, hides = rule.hides(group.length),
             drops = dropout.keys.defined() && config.dropout > 0;
  const QueryRange range = all_queries(rule, group.length, has_one_query);
  const std::int64_t num_heads = heads.query.size(1);
  if (!drops && rule.soft_cap == 0) {
    std::optional<at::Tensor> mask;
    if (hides) mask = added_mask(rule, range, heads.query.options().requires_grad(false));
    // In single precision a GPU's only fused kernel needs as many key heads as query heads.
    const bool repeats = heads.query.is_cuda() && heads.query.scalar_type() == at::kFloat;
    const at::Tensor key = repeats ? for_all_queries(heads.key, num_heads) : heads.key,
                     value = repeats ? for_all_queries(heads.value, num_heads) : heads.value;
    return at::scaled_dot_product_attention(heads.query, key, value, mask, /*dropout_p=*/0.0,
                                            /*is_causal=*/!mask && rule.is_causal && !has_one_query, rule.scale,
                                            /*enable_gqa=*/key.size(1) != num_heads);
  }
  at::Tensor scores = at::matmul(heads.query, for_all_queries(heads.key, num_heads).transpose(2, 3)) * rule.scale;
  if (rule.soft_cap > 0) scores = at::tanh(scores / rule.soft_cap) * rule.soft_cap;
  if (hides || (rule.is_causal && !has_one_query))
    scores = scores.masked_fill(hidden_keys(rule, range, scores.device()), -std::numeric_limits<double>::infinity());
  at::Tensor weights = scores.softmax(-1);
  if (drops) {
    const at::Tensor keys = dropout.keys.narrow(0, group.first_sample, group.samples);
    weights = drop_attention(config, dropout.layer, weights, keys, dropout.first_head);
  }
  return at::matmul(weights, for_all_queries(heads.value, num_heads));
}

/// Returns some rows of a stacked matrix, or some values of a bias.
Parameter part_of(const Parameter& parameter, std::int64_t begin, std::int64_t count) {
  const auto narrowed = [&](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.narrow(0, begin, count) : tensor;
  };
  return {narrowed(parameter.value), narrowed(parameter.gradient)};
}

/// The projections to query, key and value: one matrix that stacks all three, or two.
class Projections {
 public:
  Projections(const LayerParameters& parameters, bool keys_are_shared)
      : is_one_(parameters.has(Role::query_key_value)), keys_are_shared_(keys_are_shared) {
    const Parameter &all = parameters[Role::query_key_value], &all_bias = parameters[Role::query_key_value_bias];
    if (is_one_) {
      const std::int64_t size = all.value.size(0) / 3;
      all_ = all;
      all_bias_ = all_bias;
      query_ = part_of(all, 0, size);
      query_bias_ = part_of(all_bias, 0, size);
      others_ = part_of(all, size, 2 * size);
      others_bias_ = part_of(all_bias, size, 2 * size);
    } else {
      query_ = parameters[Role::query];
      query_bias_ = parameters[Role::query_bias];
      others_ = parameters[Role::key_value];
      others_bias_ = parameters[Role::key_value_bias];
    }
  }

  /// With sequence parallelism, keys and values that all tensor ranks share are computed for this rank's rows only.
  AttentionInput of(const at::Tensor& x, const NeededTokens& needed) const {
    const RankRows& rows = needed.rows_of_all();
    if (needed.all() && is_one_) return {.query = project_columns(x, all_, all_bias_, rows)};
    if (rows.are_split())
      return {.query = project_columns(needed.of(x), query_, query_bias_, needed.rows()),
              .key_value = keys_are_shared_ ? project(x, others_, others_bias_)
                                            : project_columns(x, others_, others_bias_, rows),
              .has_one_query = !needed.all()};
    const at::Tensor copied = copy_to(rows.ranks, x);  // a single copy needs one all-reduce for both products
    return {.query = project(needed.of(copied), query_, query_bias_),
            .key_value = project(keys_are_shared_ ? x : copied, others_, others_bias_),
            .has_one_query = !needed.all()};
  }

 private:
  bool is_one_, keys_are_shared_;  // shared: all tensor ranks have the only key head
  Parameter all_, all_bias_, query_, query_bias_, others_, others_bias_;
};

/// Applies the norms of queries and keys. Each tensor rank uses the weight for its own heads, so the ranks' gradients
/// of it are summed; with sequence parallelism the caller sums gradients of whole parameters anyway.
void norm_heads(const TransformerConfig& config, const LayerParameters& parameters, const RankRows& rows,
                bool keys_are_shared, AttentionInput& input) {
  const auto normed = [&](const at::Tensor& x, const at::Tensor& weight) {
    return rms_norm(x, weight, config.layer_norm_eps, config.norm_adds_one);
  };
  const auto summed = [&](const at::Tensor& weight) { return rows.are_split() ? weight : copy_to(rows.ranks, weight); };
  const std::int64_t keys = input.key_value.size(1) / 2;
  const at::Tensor &query_weight = parameters[Role::query_norm].value, &key_weight = parameters[Role::key_norm].value;
  input.query = normed(input.query, summed(query_weight));
  input.key_value =
      at::cat({normed(input.key_value.narrow(1, 0, keys), keys_are_shared ? key_weight : summed(key_weight)),
               input.key_value.narrow(1, keys, keys)},
              1);
}

/// Returns the positions in their samples of the tokens that are classified. [samples] int64
at::Tensor query_places(const TransformerConfig& config, const MicroBatch& batch, const at::Device& device) {
  std::vector<std::int64_t> places;
  for (const std::int64_t length : batch.lengths) places.push_back(config.is_causal ? length - 1 : 0);
  return to_device(at::tensor(places, at::kLong), device);
}

/// Applies rotary positions. `key_rows` are the rows whose keys are present.
void rotate_heads(const TransformerConfig& config, int layer, const MicroBatch& batch, const RankRows& key_rows,
                  AttentionInput& input) {
  const AttentionPattern pattern = config.pattern_of(block_of_layer(config, layer));
  if (pattern.rotary < 0) return;
  const Rotary& rotary = config.rotaries[pattern.rotary];
  const std::int64_t size = config.size_of_head();
  const at::Device device = input.query.device();
  std::int64_t longest = 1;
  for (std::int64_t sample = 0; sample < batch.size(); ++sample)
    longest = std::max<std::int64_t>(longest, batch.tokens_of(sample).end);
  const auto angles_at = [&](const at::Tensor& places) {
    return rotary_angles(rotary, size, places, longest, input.query.scalar_type());
  };
  const RotaryAngles angles = angles_at(positions(batch, key_rows, device));
  if (!input.key_value.defined()) {
    input.query = rotated(input.query, angles, size, input.query.size(1) / size / 3 * 2);
    return;
  }
  input.key_value = rotated(input.key_value, angles, size, input.key_value.size(1) / size / 2);
  const RotaryAngles of_queries = input.has_one_query    ? angles_at(query_places(config, batch, device))
                                  : key_rows.are_split() ? angles_at(positions(batch, RankRows{}, device))
                                                         : angles;
  input.query = rotated(input.query, of_queries, size, input.query.size(1) / size);
}

}  // namespace

AttentionRule rule_of(const TransformerConfig& config, int layer) {
  const std::int64_t size = config.size_of_head();
  return {.head_size = size,
          .scale = config.attention_scale > 0 ? config.attention_scale : 1 / std::sqrt(static_cast<double>(size)),
          .soft_cap = config.attention_soft_cap,
          .is_causal = config.is_causal,
          .window = config.pattern_of(block_of_layer(config, layer)).window};
}

QueryRange all_queries(const AttentionRule& rule, std::int64_t length, bool has_one_query) {
  const std::int64_t one = rule.is_causal ? length - 1 : 0;
  return {.length = length,
          .queries = has_one_query ? TokenRange{one, one + 1} : TokenRange{0, length},
          .num_keys = length};
}

at::Tensor hidden_keys(const AttentionRule& rule, const QueryRange& range, const at::Device& device) {
  const at::TensorOptions options = at::TensorOptions().dtype(at::kLong).device(device);
  const at::Tensor ahead = at::arange(range.num_keys, options).unsqueeze(0) -
                           at::arange(range.queries.begin, range.queries.end, options).unsqueeze(1);
  const at::Tensor later = rule.is_causal ? ahead > 0 : ahead > range.length;
  return rule.window > 0 ? later.logical_or(ahead.abs() >= rule.window) : later;
}

at::Tensor added_mask(const AttentionRule& rule, const QueryRange& range, const at::TensorOptions& options) {
  const at::Tensor hidden = hidden_keys(rule, range, options.device());
  return at::zeros(hidden.sizes(), options).masked_fill_(hidden, -std::numeric_limits<double>::infinity());
}

AttentionInput attention_input(const TransformerConfig& config, int layer, const at::Tensor& x,
                               const LayerParameters& parameters, const MicroBatch& batch, const NeededTokens& needed) {
  const RankRows& rows = needed.rows_of_all();
  const bool keys_are_shared = config.key_value_heads() == 1 && rows.ranks;
  AttentionInput input = Projections(parameters, keys_are_shared).of(x, needed);
  const std::int64_t groups = max_tensor_ranks(config);
  input.first_head = slice_of(rows.ranks).begin_in(groups) * (config.num_attention_heads / groups);
  if (config.query_key_norm != QueryKeyNorm::none) norm_heads(config, parameters, rows, keys_are_shared, input);
  rotate_heads(config, layer, batch, keys_are_shared ? rows : RankRows{}, input);
  if (keys_are_shared) input.key_value = shared_rows(rows, input.key_value);
  return input;
}

at::Tensor attend(const TransformerConfig& config, int layer, const AttentionInput& input, const MicroBatch& batch) {
  if (batch.sliced) return attend_slice(config, layer, input, batch);
  const AttentionRule rule = rule_of(config, layer);
  const bool is_written = (batch.dropout_keys.defined() && config.dropout > 0) || rule.soft_cap > 0;
  if (input.query.is_cpu() && !is_written) return attend_in_one(input, batch.lengths, rule);
  const bool has_one_length = std::ranges::count(batch.lengths, batch.lengths.front()) == batch.size(),
             hides = rule.hides(*std::ranges::max_element(batch.lengths));
  if (!is_written && !has_one_length && !hides && has_kernel_for_packed(input, rule))
    return attend_by_kernel(input, batch, rule);
  return attend_by_autograd(config, layer, input, batch);
}

at::Tensor attend_by_autograd(const TransformerConfig& config, int layer, const AttentionInput& input,
                              const MicroBatch& batch) {
  const AttentionRule rule = rule_of(config, layer);
  const std::vector<EqualLengths> groups = groups_of(batch.lengths);
  std::vector<std::int64_t> samples, tokens;
  for (const EqualLengths& group : groups) {
    samples.push_back(group.samples);
    tokens.push_back(group.tokens());
  }
  const AttentionDropout dropout{layer, input.first_head, batch.dropout_keys};
  if (groups.size() == 1)  // splitting the input would copy its gradients together again
    return joined(attend_group(config, rule, heads_of(input, groups[0], rule), groups[0], dropout));
  const std::vector<at::Tensor> queries = input.query.split_with_sizes(input.has_one_query ? samples : tokens);
  const std::vector<at::Tensor> others =
      input.key_value.defined() ? input.key_value.split_with_sizes(tokens) : std::vector<at::Tensor>(groups.size());
  std::vector<at::Tensor> parts;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const AttentionInput part{.query = queries[i], .key_value = others[i], .has_one_query = input.has_one_query};
    parts.push_back(joined(attend_group(config, rule, heads_of(part, groups[i], rule), groups[i], dropout)));
  }
  return at::cat(parts);
}

}  // namespace frostpipe
