#include "executor/models/sliced_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <limits>
#include <optional>
#include <vector>

#include "executor/models/functions.h"
#include "executor/models/packed_attention.h"

namespace frostpipe {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::tensor_list;
using torch::autograd::variable_list;

/// The arguments that are not tensors of the slice.
struct SliceSettings : torch::CustomClassHolder {
  TransformerConfig config;
  AttentionRule rule;
  int layer = 0;
  std::int64_t first_head = 0;
  bool is_stacked = true;             // query, key and value are one tensor
  std::vector<std::int64_t> lengths;  // of whole samples
  TokenRange tokens;
  at::Tensor dropout_keys;  // undefined: no dropout
  c10::intrusive_ptr<KeyValues> key_values;
};

/// Samples of one length, and their rows of the slice.
struct Group {
  EqualLengths samples;
  TokenRange tokens;           // of each sample
  std::int64_t first_row = 0;  // within the slice
  std::int64_t rows() const { return samples.samples * tokens.count(); }
};

/// The heads of one group, [samples, heads or key heads, queries or tokens, size].
struct SliceHeads {
  at::Tensor query, key, value;
};

class SliceView {
 public:
  explicit SliceView(const SliceSettings& settings) : settings_(settings) {
    std::int64_t first_row = 0;
    for (const EqualLengths& samples : groups_of(settings.lengths)) {
      const Group group{samples, settings.tokens.of(samples.length), first_row};
      if (group.rows() == 0) continue;
      groups_.push_back(group);
      of_threads_.push_back({.samples = samples.samples, .length = group.tokens.count()});
      first_row += group.rows();
    }
  }

  template <class Visit>
  void for_each(Visit visit) const {
    for_groups(of_threads_, [&](int i) { visit(groups_[i], i); });
  }
  std::size_t size() const { return groups_.size(); }

  /// Views a group's rows of the slice, which have `parts` parts each -> [samples, tokens of the slice, parts, heads,
  /// size]
  at::Tensor rows_of(const at::Tensor& all, const Group& group, std::int64_t parts) const {
    return all.narrow(0, group.first_row, group.rows())
        .view({group.samples.samples, group.tokens.count(), parts, all.size(1) / parts / head_size(), head_size()});
  }
  /// Views rows of whole samples up to the end of the slice -> [samples, tokens, 2, heads, size]
  at::Tensor pairs_of(const at::Tensor& all, const Group& group) const {
    return all.narrow(0, group.samples.first_token, group.samples.tokens())
        .view({group.samples.samples, group.samples.length, 2, all.size(1) / 2 / head_size(), head_size()})
        .narrow(1, 0, group.tokens.end);
  }
  SliceHeads heads_of(const at::Tensor& query, const Group& group) const {
    const at::Tensor pairs = pairs_of(settings_.key_values->rows, group);
    return {rows_of(query, group, 1).select(2, 0).transpose(1, 2), pairs.select(2, 0).transpose(1, 2),
            pairs.select(2, 1).transpose(1, 2)};
  }

 private:
  std::int64_t head_size() const { return settings_.rule.head_size; }

  const SliceSettings& settings_;
  std::vector<Group> groups_;
  std::vector<EqualLengths> of_threads_;
};

QueryRange query_range(const Group& group) {
  return {.length = group.samples.length, .queries = group.tokens, .num_keys = group.tokens.end};
}

/// Returns the mask that the CPU's fused attention adds to the scores; nothing if is_causal suffices.
std::optional<at::Tensor> slice_mask(const AttentionRule& rule, const Group& group, const at::Tensor& query) {
  if (group.tokens.begin == 0 && !rule.hides(group.tokens.end)) return std::nullopt;
  return added_mask(rule, query_range(group), query.options());
}

/// The attention weights of a group, written out by the formula of attention. This is for cases that the CPU's fused
/// attention does not support: dropout, soft caps and GPUs.
struct Written {
  at::Tensor weights;  // after the softmax
  at::Tensor scale;    // dropout's factor for each weight; undefined: 1
  at::Tensor slope;    // the soft cap's derivative for each score; undefined: 1
  at::Tensor used() const { return scale.defined() ? weights * scale : weights; }
};

/// Computes the backward of for_all_queries(). [samples, heads, tokens, size] -> [samples, key heads, tokens, size]
at::Tensor sum_for_keys(const at::Tensor& of_heads, std::int64_t key_heads) {
  return of_heads.view({of_heads.size(0), key_heads, -1, of_heads.size(2), of_heads.size(3)}).sum(2);
}

Written written(const SliceSettings& settings, const Group& group, const SliceHeads& heads) {
  const AttentionRule& rule = settings.rule;
  Written result;
  at::Tensor scores =
      at::matmul(heads.query, for_all_queries(heads.key, heads.query.size(1)).transpose(2, 3)) * rule.scale;
  if (rule.soft_cap > 0) {
    const at::Tensor bent = at::tanh(scores / rule.soft_cap);
    scores = bent * rule.soft_cap;
    result.slope = 1 - bent.square();
  }
  const at::Tensor hidden = hidden_keys(rule, query_range(group), scores.device());
  result.weights = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity()).softmax(-1);
  if (!settings.dropout_keys.defined()) return result;
  const at::Tensor keys = settings.dropout_keys.narrow(0, group.samples.first_sample, group.samples.samples);
  const at::Tensor kept =
      attention_kept_of_slice(settings.config, settings.layer, {settings.first_head, heads.query.size(1)},
                              {.queries = group.tokens, .length = group.samples.length}, keys);
  result.scale = kept.to(scores.options()) / (1 - settings.config.dropout);
  return result;
}

/// Returns the gradients of query, key and value.
SliceHeads written_backward(const Written& forward, double scale, const SliceHeads& heads, const at::Tensor& gradient) {
  const std::int64_t num_heads = heads.query.size(1), key_heads = heads.key.size(1);
  at::Tensor of_weights = at::matmul(gradient, for_all_queries(heads.value, num_heads).transpose(2, 3));
  if (forward.scale.defined()) of_weights = of_weights * forward.scale;
  at::Tensor of_scores =
      forward.weights * (of_weights - (of_weights * forward.weights).sum(-1, /*keepdim=*/true)) * scale;
  if (forward.slope.defined()) of_scores = of_scores * forward.slope;
  return {at::matmul(of_scores, for_all_queries(heads.key, num_heads)),
          sum_for_keys(at::matmul(of_scores.transpose(2, 3), heads.query), key_heads),
          sum_for_keys(at::matmul(forward.used().transpose(2, 3), gradient), key_heads)};
}

bool is_fused(const SliceSettings& settings, const at::Tensor& tensor) {
  return tensor.is_cpu() && !settings.dropout_keys.defined() && settings.rule.soft_cap == 0;
}

struct SlicedAttention : Function<SlicedAttention> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& projected,
                            const std::optional<at::Tensor>& key_value,
                            const c10::intrusive_ptr<SliceSettings>& settings) {
    const AttentionRule& rule = settings->rule;
    const std::int64_t query_size = settings->is_stacked ? projected.size(1) / 3 : projected.size(1);
    const at::TensorOptions options = projected.options().requires_grad(false);
    // Keys and values are stored once, in `rows`.
    const at::Tensor query = projected.narrow(1, 0, query_size).contiguous(),
                     pairs = settings->is_stacked ? projected.narrow(1, query_size, 2 * query_size) : *key_value;
    at::Tensor& rows = settings->key_values->rows;
    if (!rows.defined()) {
      std::int64_t tokens = 0;
      for (const std::int64_t length : settings->lengths) tokens += length;
      rows = at::empty({tokens, pairs.size(1)}, options);
    }
    const at::Tensor output = at::empty({projected.size(0), query_size}, options);
    const SliceView view(*settings);
    variable_list saved(view.size());
    view.for_each([&](const Group& group, int i) {
      view.pairs_of(rows, group)
          .narrow(1, group.tokens.begin, group.tokens.count())
          .copy_(view.rows_of(pairs, group, 2));
      const SliceHeads heads = view.heads_of(query, group);
      at::Tensor mixed;
      if (is_fused(*settings, query)) {
        const auto mask = slice_mask(rule, group, query);
        std::tie(mixed, saved[i]) = at::_scaled_dot_product_flash_attention_for_cpu(
            heads.query, heads.key, heads.value, /*dropout_p=*/0.0, /*is_causal=*/!mask, mask, rule.scale);
      } else {
        mixed = at::matmul(written(*settings, group, heads).used(), for_all_queries(heads.value, heads.query.size(1)));
      }
      view.rows_of(output, group, 1).select(2, 0).transpose(1, 2).copy_(mixed);
    });
    saved.insert(saved.end(), {query, is_fused(*settings, query) ? output : at::Tensor()});
    context->save_for_backward(saved);
    context->saved_data["settings"] = c10::IValue::make_capsule(settings);
    return output;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    const auto capsule = context->saved_data["settings"].toCapsule();
    const auto& settings = static_cast<const SliceSettings&>(*capsule);
    const AttentionRule& rule = settings.rule;
    const SliceView view(settings);
    const variable_list saved = context->get_saved_variables();
    const at::Tensor query = saved[view.size()], output = saved[view.size() + 1];
    const at::Tensor output_gradient = gradients[0].contiguous();
    KeyValues& shared = *settings.key_values;
    if (!shared.gradient.defined())
      shared.gradient =
          at::zeros(shared.rows.sizes(),
                    query.scalar_type() == at::kDouble ? query.options() : query.options().dtype(at::kFloat));
    const std::int64_t query_size = query.size(1), pair_size = shared.rows.size(1);
    const at::Tensor gradient =
        at::empty({query.size(0), query_size + (settings.is_stacked ? pair_size : 0)}, query.options());
    const at::Tensor of_queries = gradient.narrow(1, 0, query_size),
                     of_pairs = settings.is_stacked ? gradient.narrow(1, query_size, pair_size)
                                                    : at::empty({query.size(0), pair_size}, query.options());
    view.for_each([&](const Group& group, int i) {
      const auto by_head = [&](const at::Tensor& all) {
        return view.rows_of(all, group, 1).select(2, 0).transpose(1, 2);
      };
      const SliceHeads heads = view.heads_of(query, group);
      SliceHeads of;
      if (is_fused(settings, query)) {
        const auto mask = slice_mask(rule, group, query);
        std::tie(of.query, of.key, of.value) = at::_scaled_dot_product_flash_attention_for_cpu_backward(
            by_head(output_gradient), heads.query, heads.key, heads.value, by_head(output), saved[i],
            /*dropout_p=*/0.0, /*is_causal=*/!mask, mask, rule.scale);
      } else {
        of = written_backward(written(settings, group, heads), rule.scale, heads, by_head(output_gradient));
      }
      const at::Tensor pairs = view.pairs_of(shared.gradient, group);
      pairs.select(2, 0).add_(of.key.transpose(1, 2));
      pairs.select(2, 1).add_(of.value.transpose(1, 2));
      by_head(of_queries).copy_(of.query);
      view.rows_of(of_pairs, group, 2).copy_(pairs.narrow(1, group.tokens.begin, group.tokens.count()));
    });
    return {gradient, settings.is_stacked ? at::Tensor() : of_pairs, at::Tensor()};
  }
};

}  // namespace

c10::intrusive_ptr<KeyValues> KeyValuesOfLayers::of(int layer) {
  c10::intrusive_ptr<KeyValues>& found = layers_[layer];
  if (!found) found = c10::make_intrusive<KeyValues>();
  return found;
}

at::Tensor attend_slice(const TransformerConfig& config, int layer, const AttentionInput& input,
                        const MicroBatch& batch) {
  auto settings = c10::make_intrusive<SliceSettings>();
  settings->config = config;
  settings->rule = rule_of(config, layer);
  settings->is_stacked = !input.key_value.defined();
  settings->layer = layer;
  settings->first_head = input.first_head;
  settings->lengths = batch.sliced->lengths;
  settings->tokens = batch.sliced->tokens;
  if (config.dropout > 0) settings->dropout_keys = batch.dropout_keys;
  settings->key_values = batch.sliced->key_values->of(layer);
  const auto key_value = input.key_value.defined() ? std::optional(input.key_value) : std::nullopt;
  return SlicedAttention::apply(input.query, key_value, settings);
}

}  // namespace frostpipe
