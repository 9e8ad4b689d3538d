#include "executor/models/functions.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "executor/data/random_numbers.h"
#include "executor/models/products.h"
#include "executor/models/weight_gradients.h"

namespace frostpipe {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::tensor_list;
using torch::autograd::variable_list;

at::Tensor as_matrix(const at::Tensor& activation) { return activation.reshape({-1, activation.size(-1)}); }

struct LinearFunction : Function<LinearFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, const at::Tensor& weight_gradient,
                            const std::optional<at::Tensor>& bias_gradient) {
    context->save_for_backward({x, weight});
    // Not among what is saved: they change from micro-batch to micro-batch, and autograd would complain.
    context->saved_data["weight_gradient"] = weight_gradient;
    if (bias_gradient) context->saved_data["bias_gradient"] = *bias_gradient;
    return times_transposed(x, weight, bias ? std::optional(bias->to(x.scalar_type())) : std::nullopt);
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor x = as_matrix(saved[0]), gradient = as_matrix(gradients[0]);  // [rows, in], [rows, out]
    add_weight_gradient(context->saved_data["weight_gradient"].toTensor(), gradient, x.detach());
    if (const auto found = context->saved_data.find("bias_gradient"); found != context->saved_data.end()) {
      const at::Tensor& bias_gradient = found->second.toTensor();
      bias_gradient.add_(gradient.sum(0, /*keepdim=*/false, bias_gradient.scalar_type()));
    }
    at::Tensor input_gradient;
    if (context->needs_input_grad(0)) input_gradient = times(gradient, saved[1]).view(saved[0].sizes());
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
    add_row_gradients(context->saved_data["table_gradient"].toTensor(), saved[0].reshape(-1), as_matrix(gradients[0]));
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

}  // namespace

at::Tensor project(const at::Tensor& x, const Parameter& weight, const Parameter& bias) {
  const auto given = [](const at::Tensor& tensor) { return tensor.defined() ? std::optional(tensor) : std::nullopt; };
  if (at::GradMode::is_enabled() && weight.gradient.defined())
    return LinearFunction::apply(x, weight.value, given(bias.value), weight.gradient, given(bias.gradient));
  const auto converted = bias.value.defined() ? std::optional(bias.value.to(x.scalar_type())) : std::nullopt;
  if (!at::GradMode::is_enabled()) return times_transposed(x, weight.value, converted);
  return at::linear(x, weight.value, converted);  // of frozen weights, whose input wants a gradient
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

at::Tensor apply_dropout(const TransformerConfig& config, int layer, DropoutSite site, const at::Tensor& x,
                         const MicroBatch& batch) {
  if (!batch.dropout_keys.defined() || config.dropout == 0) return x;
  const std::int64_t row = x.numel() / std::max<std::int64_t>(1, x.size(0));
  std::vector<std::int64_t> counts(batch.size(), row);
  if (x.size(0) != batch.size()) {
    for (std::size_t sample = 0; sample < counts.size(); ++sample) counts[sample] *= batch.lengths[sample];
  }
  return dropped(config, layer, site, x, batch.dropout_keys, counts);
}

at::Tensor drop_attention(const TransformerConfig& config, int layer, const at::Tensor& weights,
                          const at::Tensor& keys) {
  const std::vector<std::int64_t> counts(keys.numel(), weights.numel() / keys.numel());
  return dropped(config, layer, DropoutSite::attention, weights, keys, counts);
}

}  // namespace frostpipe
