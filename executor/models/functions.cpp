#include "executor/models/functions.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "executor/data/random_numbers.h"

namespace frostpipe {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::tensor_list;
using torch::autograd::variable_list;

at::Tensor as_matrix(const at::Tensor& activation) { return activation.reshape({-1, activation.size(-1)}); }

/// a^T b, added into `sum`, which may be of a higher precision.
void add_product(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
  if (sum.scalar_type() == a.scalar_type()) {
    sum.addmm_(a.t(), b);
  } else {
    sum.add_(a.t().mm(b));
  }
}

struct LinearFunction : Function<LinearFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, const at::Tensor& weight_gradient,
                            const std::optional<at::Tensor>& bias_gradient) {
    context->save_for_backward({x, weight});
    // Not among what is saved: they change from micro-batch to micro-batch, and autograd would complain.
    context->saved_data["weight_gradient"] = weight_gradient;
    if (bias_gradient) context->saved_data["bias_gradient"] = *bias_gradient;
    return at::linear(x, weight, bias ? std::optional(bias->to(x.scalar_type())) : std::nullopt);
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor x = as_matrix(saved[0]), gradient = as_matrix(gradients[0]);  // [rows, in], [rows, out]
    add_product(context->saved_data["weight_gradient"].toTensor(), gradient, x);
    if (const auto found = context->saved_data.find("bias_gradient"); found != context->saved_data.end()) {
      const at::Tensor& bias_gradient = found->second.toTensor();
      bias_gradient.add_(gradient.sum(0, /*keepdim=*/false, bias_gradient.scalar_type()));
    }
    at::Tensor input_gradient;
    if (context->needs_input_grad(0)) input_gradient = gradient.mm(saved[1]).view(saved[0].sizes());
    return {input_gradient, at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

struct EmbeddingFunction : Function<EmbeddingFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& table, const at::Tensor& ids,
                            const at::Tensor& table_gradient) {
    context->save_for_backward({ids});
    context->saved_data["table_gradient"] = table_gradient;
    return at::embedding(table, ids);
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor table_gradient = context->saved_data["table_gradient"].toTensor();
    table_gradient.index_add_(0, saved[0].reshape(-1), as_matrix(gradients[0]).to(table_gradient.scalar_type()));
    return {at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

/// 1 where a value stays, 0 where it is dropped. The values of sample i are the next counts[i] of `x`, and its random
/// numbers those of key i.
at::Tensor kept(const at::Tensor& x, const at::Tensor& keys, std::span<const std::int64_t> counts, std::uint64_t place,
                double rate) {
  at::Tensor result = at::empty(x.sizes(), at::kFloat);
  const auto threshold = static_cast<std::uint32_t>(rate * 4294967296.0);
  float* out = result.data_ptr<float>();
  for (std::size_t sample = 0; sample < counts.size(); ++sample) {
    const std::uint64_t key = mixed(static_cast<std::uint64_t>(keys.data_ptr<std::int64_t>()[sample]) + place);
    for (std::int64_t i = 0; i < counts[sample]; i += 2) {  // two values of 32 bits from each number
      const std::uint64_t random = mixed(key + static_cast<std::uint64_t>(i));
      out[i] = static_cast<std::uint32_t>(random) >= threshold;
      if (i + 1 < counts[sample]) out[i + 1] = static_cast<std::uint32_t>(random >> 32) >= threshold;
    }
    out += counts[sample];
  }
  return result.to(x.options());
}

at::Tensor dropped(const TransformerConfig& config, int layer, DropoutSite site, const at::Tensor& x,
                   const at::Tensor& keys, std::span<const std::int64_t> counts) {
  const std::uint64_t place = mixed(static_cast<std::uint64_t>(layer) * 2 + static_cast<std::uint64_t>(site));
  return x * (kept(x, keys, counts, place, config.dropout) / (1 - config.dropout));
}

/// Consecutive samples of one length.
struct EqualLengths {
  std::int64_t first_sample = 0, samples = 0, length = 0;
};

std::vector<EqualLengths> groups_of(const MicroBatch& batch) {
  std::vector<EqualLengths> groups;
  for (std::int64_t sample = 0; sample < batch.size(); ++sample) {
    if (groups.empty() || groups.back().length != batch.lengths[sample])
      groups.push_back({sample, 0, batch.lengths[sample]});
    ++groups.back().samples;
  }
  return groups;
}

/// Of one group: heads' queries [samples, heads, queries, size], keys and values [samples, heads, tokens, size] ->
/// [samples x queries, hidden]. `sees_earlier`: a token sees itself and those before it.
at::Tensor attend_group(const TransformerConfig& config, int layer, const at::Tensor& query, const at::Tensor& key,
                        const at::Tensor& value, const EqualLengths& group, const at::Tensor& dropout_keys,
                        bool sees_earlier) {
  at::Tensor mixed_values;
  if (dropout_keys.defined() && config.dropout > 0) {
    at::Tensor scores = at::matmul(query, key.transpose(2, 3)) / std::sqrt(static_cast<double>(query.size(3)));
    if (sees_earlier) {
      const at::Tensor later = at::ones({group.length, group.length}, scores.options().dtype(at::kBool)).triu(1);
      scores = scores.masked_fill(later, -std::numeric_limits<double>::infinity());
    }
    const std::vector<std::int64_t> counts(group.samples, scores.numel() / group.samples);
    const at::Tensor keys = dropout_keys.narrow(0, group.first_sample, group.samples);
    mixed_values = at::matmul(dropped(config, layer, DropoutSite::attention, scores.softmax(-1), keys, counts), value);
  } else {
    mixed_values = at::scaled_dot_product_attention(query, key, value, /*attn_mask=*/{}, /*dropout_p=*/0.0,
                                                    /*is_causal=*/sees_earlier);
  }
  return mixed_values.transpose(1, 2).reshape({-1, config.hidden_size});
}

/// Of one group: [tokens, 3 hidden] -> [tokens, hidden]
at::Tensor attend_equal(const TransformerConfig& config, int layer, const at::Tensor& query_key_value,
                        const EqualLengths& group, const at::Tensor& dropout_keys, bool is_causal) {
  const std::int64_t heads = config.num_attention_heads, size = config.hidden_size / heads;
  const at::Tensor qkv = query_key_value.view({group.samples, group.length, 3, heads, size}).permute({2, 0, 3, 1, 4});
  return attend_group(config, layer, qkv[0], qkv[1], qkv[2], group, dropout_keys, is_causal);
}

/// Of one group: query [samples, hidden], keys and values [tokens, 2 hidden] -> [samples, hidden]
at::Tensor attend_one_token(const TransformerConfig& config, int layer, const at::Tensor& query,
                            const at::Tensor& key_value, const EqualLengths& group, const at::Tensor& dropout_keys) {
  const std::int64_t heads = config.num_attention_heads, size = config.hidden_size / heads;
  const at::Tensor kv = key_value.view({group.samples, group.length, 2, heads, size}).permute({2, 0, 3, 1, 4});
  return attend_group(config, layer, query.view({group.samples, heads, 1, size}), kv[0], kv[1], group, dropout_keys,
                      /*sees_earlier=*/false);
}

/// Rows of class_tokens.
at::Tensor class_rows(const TransformerConfig& config, const MicroBatch& batch) {
  std::vector<std::int64_t> rows = batch.offsets();
  if (config.family == Family::gpt2) {
    rows.erase(rows.begin());
    for (std::int64_t& row : rows) --row;
  } else {
    rows.pop_back();
  }
  return at::tensor(rows, at::kLong);
}

/// Some rows of a stacked matrix, or some values of a bias.
Parameter part_of(const Parameter& parameter, std::int64_t begin, std::int64_t count) {
  const auto narrowed = [&](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.narrow(0, begin, count) : tensor;
  };
  return {narrowed(parameter.value), narrowed(parameter.gradient)};
}

}  // namespace

at::Tensor project(const at::Tensor& x, const Parameter& weight, const Parameter& bias) {
  const auto given = [](const at::Tensor& tensor) { return tensor.defined() ? std::optional(tensor) : std::nullopt; };
  if (at::GradMode::is_enabled() && weight.gradient.defined())
    return LinearFunction::apply(x, weight.value, given(bias.value), weight.gradient, given(bias.gradient));
  return at::linear(x, weight.value,
                    bias.value.defined() ? std::optional(bias.value.to(x.scalar_type())) : std::nullopt);
}

at::Tensor look_up(const Parameter& table, const at::Tensor& ids) {
  return at::GradMode::is_enabled() && table.gradient.defined()
             ? EmbeddingFunction::apply(table.value, ids, table.gradient)
             : at::embedding(table.value, ids);
}

at::Tensor layer_norm(const TransformerConfig& config, const at::Tensor& x, const Parameter& weight,
                      const Parameter& bias) {
  return at::layer_norm(x, {config.hidden_size}, weight.value.to(x.scalar_type()), bias.value.to(x.scalar_type()),
                        config.layer_norm_eps);
}

NeededTokens::NeededTokens(const TransformerConfig& config, int layer, const MicroBatch& batch,
                           const at::Device& device)
    : num_tokens_(batch.num_tokens()) {
  if (makes_one_token(config, layer)) rows_ = class_rows(config, batch).to(device);
}

at::Tensor NeededTokens::of(const at::Tensor& x) const { return all() ? x : x.index_select(0, rows_); }

at::Tensor NeededTokens::spread(const at::Tensor& x) const {
  return all() ? x : at::zeros({num_tokens_, x.size(1)}, x.options()).index_copy(0, rows_, x);
}

bool makes_one_token(const TransformerConfig& config, int layer) {
  const bool is_classified = config.task == Task::sequence_classification || config.task == Task::image_classification;
  return is_classified && layer >= 2 * config.num_hidden_layers - 1 && layer <= 2 * config.num_hidden_layers;
}

at::Tensor self_attention(const TransformerConfig& config, int layer, const at::Tensor& x, const Parameter& weight,
                          const Parameter& bias, const MicroBatch& batch, const NeededTokens& needed, bool is_causal) {
  if (needed.all()) return attend(config, layer, project(x, weight, bias), batch, is_causal);
  // The needed token sees its whole sample, the last one of GPT-2's too.
  const std::int64_t hidden = config.hidden_size;
  const at::Tensor query = project(needed.of(x), part_of(weight, 0, hidden), part_of(bias, 0, hidden));
  const at::Tensor key_value = project(x, part_of(weight, hidden, 2 * hidden), part_of(bias, hidden, 2 * hidden));
  const std::vector<EqualLengths> groups = groups_of(batch);
  std::vector<std::int64_t> samples, tokens;
  for (const EqualLengths& group : groups) {
    samples.push_back(group.samples);
    tokens.push_back(group.samples * group.length);
  }
  const std::vector<at::Tensor> queries = query.split_with_sizes(samples);
  std::vector<at::Tensor> parts = key_value.split_with_sizes(tokens);
  for (std::size_t i = 0; i < groups.size(); ++i)
    parts[i] = attend_one_token(config, layer, queries[i], parts[i], groups[i], batch.dropout_keys);
  return at::cat(parts);
}

at::Tensor positions(const MicroBatch& batch, const at::Device& device) {
  std::vector<std::int64_t> places;
  places.reserve(batch.num_tokens());
  for (const std::int64_t length : batch.lengths) {
    for (std::int64_t place = 0; place < length; ++place) places.push_back(place);
  }
  return at::tensor(places, at::kLong).to(device);
}

at::Tensor class_tokens(const TransformerConfig& config, const at::Tensor& x, const MicroBatch& batch) {
  return x.index_select(0, class_rows(config, batch).to(x.device()));
}

at::Tensor attend(const TransformerConfig& config, int layer, const at::Tensor& query_key_value,
                  const MicroBatch& batch, bool is_causal) {
  const std::vector<EqualLengths> groups = groups_of(batch);
  if (groups.size() == 1)
    return attend_equal(config, layer, query_key_value, groups.front(), batch.dropout_keys, is_causal);
  std::vector<std::int64_t> sizes;
  for (const EqualLengths& group : groups) sizes.push_back(group.samples * group.length);
  std::vector<at::Tensor> parts = query_key_value.split_with_sizes(sizes);
  for (std::size_t i = 0; i < groups.size(); ++i)
    parts[i] = attend_equal(config, layer, parts[i], groups[i], batch.dropout_keys, is_causal);
  return at::cat(parts);
}

at::Tensor drop(const TransformerConfig& config, int layer, DropoutSite site, const at::Tensor& x,
                const MicroBatch& batch) {
  if (!batch.dropout_keys.defined() || config.dropout == 0) return x;
  const std::int64_t row = x.numel() / std::max<std::int64_t>(1, x.size(0));
  std::vector<std::int64_t> counts(batch.size(), row);
  if (x.size(0) != batch.size()) {
    for (std::size_t sample = 0; sample < counts.size(); ++sample) counts[sample] *= batch.lengths[sample];
  }
  return dropped(config, layer, site, x, batch.dropout_keys, counts);
}

}  // namespace frostpipe
