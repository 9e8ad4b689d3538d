#include "executor/models/sliced_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
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

/// What is no tensor of the slice itself.
struct SliceSettings : torch::CustomClassHolder {
  TransformerConfig config;
  int layer = 0;
  std::int64_t first_head = 0;
  std::vector<std::int64_t> lengths;  // of the whole samples
  TokenRange tokens;
  at::Tensor dropout_keys;  // undefined: nothing is dropped
  c10::intrusive_ptr<KeyValues> key_values;
};

/// Samples of one length, with their rows of the slice.
struct Group {
  EqualLengths samples;
  TokenRange tokens;           // of each sample
  std::int64_t first_row = 0;  // of the slice
  std::int64_t rows() const { return samples.samples * tokens.count(); }
};

/// Of one group, [samples, heads, queries or tokens, size]
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

  /// Rows of the slice, `parts` values of hidden size in each -> [samples, tokens of the slice, parts, heads, size]
  at::Tensor rows_of(const at::Tensor& all, const Group& group, std::int64_t parts) const {
    return all.narrow(0, group.first_row, group.rows())
        .view({group.samples.samples, group.tokens.count(), parts, all.size(1) / parts / head_size(), head_size()});
  }
  /// Rows of whole samples, up to the slice's end -> [samples, tokens, 2, heads, size]
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
  std::int64_t head_size() const { return settings_.config.hidden_size / settings_.config.num_attention_heads; }

  const SliceSettings& settings_;
  std::vector<Group> groups_;
  std::vector<EqualLengths> of_threads_;
};

/// Of the tokens of a slice: those that a query does not see are after it. [queries, tokens]
at::Tensor unseen(const Group& group, const at::Device& device) {
  const at::TensorOptions options = at::TensorOptions().dtype(at::kBool).device(device);
  return at::ones({group.tokens.count(), group.tokens.end}, options).triu(group.tokens.begin + 1);
}

/// What the CPU's fused attention adds to the scores; none where it knows by itself.
std::optional<at::Tensor> added_mask(const Group& group, const at::Tensor& query) {
  if (group.tokens.begin == 0) return std::nullopt;
  return at::zeros({group.tokens.count(), group.tokens.end}, query.options())
      .masked_fill_(unseen(group, query.device()), -std::numeric_limits<double>::infinity());
}

/// softmax attention by its formula, for what the fused one cannot do: dropout and other devices.
struct Written {
  at::Tensor weights;  // after the softmax
  at::Tensor scale;    // of each weight by dropout; undefined: 1
  double factor = 1;   // of the scores
  at::Tensor used() const { return scale.defined() ? weights * scale : weights; }
};

Written written(const SliceSettings& settings, const Group& group, const SliceHeads& heads) {
  Written result;
  result.factor = 1 / std::sqrt(static_cast<double>(heads.query.size(3)));
  const at::Tensor scores = at::matmul(heads.query, heads.key.transpose(2, 3)) * result.factor;
  result.weights =
      scores.masked_fill(unseen(group, scores.device()), -std::numeric_limits<double>::infinity()).softmax(-1);
  if (!settings.dropout_keys.defined()) return result;
  const at::Tensor keys = settings.dropout_keys.narrow(0, group.samples.first_sample, group.samples.samples);
  const at::Tensor kept =
      attention_kept_of_slice(settings.config, settings.layer, {settings.first_head, heads.query.size(1)},
                              {.queries = group.tokens, .length = group.samples.length}, keys);
  result.scale = kept.to(scores.options()) / (1 - settings.config.dropout);
  return result;
}

/// Gradients of query, key and value.
SliceHeads written_backward(const Written& forward, const SliceHeads& heads, const at::Tensor& gradient) {
  at::Tensor of_weights = at::matmul(gradient, heads.value.transpose(2, 3));
  if (forward.scale.defined()) of_weights = of_weights * forward.scale;
  const at::Tensor of_scores =
      forward.weights * (of_weights - (of_weights * forward.weights).sum(-1, /*keepdim=*/true)) * forward.factor;
  return {at::matmul(of_scores, heads.key), at::matmul(of_scores.transpose(2, 3), heads.query),
          at::matmul(forward.used().transpose(2, 3), gradient)};
}

bool is_fused(const SliceSettings& settings, const at::Tensor& tensor) {
  return tensor.is_cpu() && !settings.dropout_keys.defined();
}

struct SlicedAttention : Function<SlicedAttention> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& projected,
                            const c10::intrusive_ptr<SliceSettings>& settings) {
    const std::int64_t hidden = projected.size(1) / 3;
    const at::TensorOptions options = projected.options().requires_grad(false);
    at::Tensor& rows = settings->key_values->rows;
    if (!rows.defined()) {
      std::int64_t tokens = 0;
      for (const std::int64_t length : settings->lengths) tokens += length;
      rows = at::empty({tokens, 2 * hidden}, options);
    }
    const at::Tensor query = projected.narrow(1, 0, hidden).contiguous();  // keys and values are kept once, in `rows`
    const at::Tensor output = at::empty({projected.size(0), hidden}, options);
    const SliceView view(*settings);
    variable_list saved(view.size());
    view.for_each([&](const Group& group, int i) {
      const at::Tensor own = view.rows_of(projected, group, 3).narrow(2, 1, 2);
      view.pairs_of(rows, group).narrow(1, group.tokens.begin, group.tokens.count()).copy_(own);
      const SliceHeads heads = view.heads_of(query, group);
      at::Tensor mixed;
      if (is_fused(*settings, query)) {
        const auto mask = added_mask(group, query);
        std::tie(mixed, saved[i]) = at::_scaled_dot_product_flash_attention_for_cpu(
            heads.query, heads.key, heads.value, /*dropout_p=*/0.0, /*is_causal=*/!mask, mask);
      } else {
        mixed = at::matmul(written(*settings, group, heads).used(), heads.value);
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
    const SliceView view(settings);
    const variable_list saved = context->get_saved_variables();
    const at::Tensor query = saved[view.size()], output = saved[view.size() + 1];
    const at::Tensor output_gradient = gradients[0].contiguous();
    KeyValues& shared = *settings.key_values;
    if (!shared.gradient.defined())
      shared.gradient =
          at::zeros(shared.rows.sizes(),
                    query.scalar_type() == at::kDouble ? query.options() : query.options().dtype(at::kFloat));
    const at::Tensor gradient = at::empty({query.size(0), 3 * query.size(1)}, query.options());
    view.for_each([&](const Group& group, int i) {
      const auto by_head = [&](const at::Tensor& all) {
        return view.rows_of(all, group, 1).select(2, 0).transpose(1, 2);
      };
      const SliceHeads heads = view.heads_of(query, group);
      SliceHeads of;
      if (is_fused(settings, query)) {
        const auto mask = added_mask(group, query);
        std::tie(of.query, of.key, of.value) = at::_scaled_dot_product_flash_attention_for_cpu_backward(
            by_head(output_gradient), heads.query, heads.key, heads.value, by_head(output), saved[i],
            /*dropout_p=*/0.0, /*is_causal=*/!mask, mask);
      } else {
        of = written_backward(written(settings, group, heads), heads, by_head(output_gradient));
      }
      const at::Tensor pairs = view.pairs_of(shared.gradient, group), into = view.rows_of(gradient, group, 3);
      pairs.select(2, 0).add_(of.key.transpose(1, 2));
      pairs.select(2, 1).add_(of.value.transpose(1, 2));
      into.select(2, 0).copy_(of.query.transpose(1, 2));
      into.narrow(2, 1, 2).copy_(pairs.narrow(1, group.tokens.begin, group.tokens.count()));
    });
    return {gradient, at::Tensor()};
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
  settings->layer = layer;
  settings->first_head = input.first_head;
  settings->lengths = batch.sliced->lengths;
  settings->tokens = batch.sliced->tokens;
  if (config.dropout > 0) settings->dropout_keys = batch.dropout_keys;
  settings->key_values = batch.sliced->key_values->of(layer);
  return SlicedAttention::apply(input.query, settings);
}

}  // namespace frostpipe
