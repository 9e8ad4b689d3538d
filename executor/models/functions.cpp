#include "executor/models/functions.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "executor/data/random_numbers.h"
#include "executor/device/to_device.h"
#include "executor/models/collectives/collectives.h"
#include "executor/models/products.h"
#include "executor/models/vocabulary/vocabulary.h"
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
                            const std::optional<at::Tensor>& bias_gradient, const RankRows& rows) {
    context->save_for_backward({x, weight});
    // Gradients are not saved as variables: they change between micro-batches, which autograd would report as an error.
    context->saved_data["weight_gradient"] = weight_gradient;
    if (bias_gradient) context->saved_data["bias_gradient"] = *bias_gradient;
    if (rows.are_split()) save(*context, rows);
    return times_transposed(rows.gathered(x.detach()), weight,
                            bias ? std::optional(bias->to(x.scalar_type())) : std::nullopt);
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const RankRows rows = saved_rows(*context);
    const at::Tensor x = as_matrix(saved[0]), gradient = as_matrix(gradients[0]);  // [own rows, in], [rows, out]
    add_weight_gradient(context->saved_data["weight_gradient"].toTensor(), gradient, x.detach(), rows);
    if (const auto found = context->saved_data.find("bias_gradient"); found != context->saved_data.end()) {
      const at::Tensor& bias_gradient = found->second.toTensor();
      bias_gradient.add_(gradient.sum(0, /*keepdim=*/false, bias_gradient.scalar_type()));
    }
    at::Tensor input_gradient;
    if (context->needs_input_grad(0))
      input_gradient = rows.scattered_sum(times(gradient, saved[1])).view(saved[0].sizes());
    return {input_gradient, at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor()};
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

/// Some values of a sample, beginning with number `first`.
struct SampleValues {
  std::int64_t first = 0, count = 0;
};

/// The dropout mask at one site of a layer in one step.
class Draw {
 public:
  Draw(const TransformerConfig& config, int layer, DropoutSite site, const at::Tensor& keys)
      : place_(mixed(static_cast<std::uint64_t>(layer) * 2 + static_cast<std::uint64_t>(site))),
        threshold_(static_cast<std::uint32_t>(config.dropout * 4294967296.0)),
        keys_(keys.data_ptr<std::int64_t>()) {}

  /// Writes 1 for values of the sample that are kept and 0 for dropped ones; returns the end.
  float* write(std::int64_t sample, const SampleValues& values, float* out) const {
    const std::uint64_t key = mixed(static_cast<std::uint64_t>(keys_[sample]) + place_);
    const std::int64_t end = values.first + values.count;
    for (std::int64_t i = values.first / 2 * 2; i < end; i += 2) {  // two values of 32 bits from each random number
      const std::uint64_t random = mixed(key + static_cast<std::uint64_t>(i));
      if (i >= values.first) *out++ = static_cast<std::uint32_t>(random) >= threshold_;
      if (i + 1 < end) *out++ = static_cast<std::uint32_t>(random >> 32) >= threshold_;
    }
    return out;
  }

 private:
  std::uint64_t place_;
  std::uint32_t threshold_;
  const std::int64_t* keys_;
};

/// Applies dropout to `x`, which has values[i] of sample i, one sample after another.
at::Tensor dropped(const TransformerConfig& config, int layer, DropoutSite site, const at::Tensor& x,
                   const at::Tensor& keys, std::span<const SampleValues> values) {
  const at::Tensor kept = at::empty(x.sizes(), at::kFloat);
  const Draw draw(config, layer, site, keys);
  float* out = kept.data_ptr<float>();
  for (std::size_t sample = 0; sample < values.size(); ++sample)
    out = draw.write(static_cast<std::int64_t>(sample), values[sample], out);
  return x * (to_device(kept.to(x.scalar_type()), x.device()) / (1 - config.dropout));
}

/// Returns the rows of the tokens that are classified.
std::vector<std::int64_t> class_rows(const TransformerConfig& config, const MicroBatch& batch) {
  std::vector<std::int64_t> rows = batch.offsets();
  if (config.is_causal) {
    rows.erase(rows.begin());
    for (std::int64_t& row : rows) --row;
  } else {
    rows.pop_back();
  }
  return rows;
}

/// Returns x W^T + b for all rows; x has this rank's rows.
at::Tensor product(const at::Tensor& x, const Parameter& weight, const Parameter& bias, const RankRows& rows) {
  const auto given = [](const at::Tensor& tensor) { return tensor.defined() ? std::optional(tensor) : std::nullopt; };
  if (at::GradMode::is_enabled() && weight.gradient.defined())
    return LinearFunction::apply(x, weight.value, given(bias.value), weight.gradient, given(bias.gradient), rows);
  const auto converted = bias.value.defined() ? std::optional(bias.value.to(x.scalar_type())) : std::nullopt;
  if (!at::GradMode::is_enabled()) return times_transposed(rows.gathered(x), weight.value, converted);
  FROSTPIPE_CHECK(!rows.are_split(), "frozen layers that tensor ranks share run without a graph");
  return at::linear(x, weight.value, converted);  // frozen weights, whose input needs a gradient
}

/// Returns, for each sample, its tokens among this rank's rows.
std::vector<TokenRange> own_tokens_of(const MicroBatch& batch, const RankRows& rows) {
  std::vector<TokenRange> own;
  std::int64_t row = 0;
  for (std::int64_t sample = 0; sample < batch.size(); ++sample) {
    TokenRange tokens = batch.tokens_of(sample);
    const std::int64_t end = row + tokens.count();
    if (rows.are_split()) {
      const std::int64_t begin = rows.begin(), own_end = begin + rows.count();
      tokens = {tokens.begin + std::clamp(begin, row, end) - row, tokens.begin + std::clamp(own_end, row, end) - row};
    }
    own.push_back(tokens);
    row = end;
  }
  return own;
}

}  // namespace

const Parameter& LayerParameters::operator[](Role role) const {
  static const Parameter kNone;
  const auto found = std::ranges::find(roles_, role);
  return found == roles_.end() ? kNone : parameters_[found - roles_.begin()];
}

at::Tensor project(const at::Tensor& x, const Parameter& weight, const Parameter& bias) {
  return product(x, weight, bias, RankRows{});
}

at::Tensor project_columns(const at::Tensor& x, const Parameter& weight, const Parameter& bias, const RankRows& rows) {
  return rows.are_split() ? product(x, weight, bias, rows) : project(copy_to(rows.ranks, x), weight, bias);
}

at::Tensor project_rows(const at::Tensor& x, const Parameter& weight, const Parameter& bias, const RankRows& rows) {
  if (!rows.ranks) return project(x, weight, bias);
  const at::Tensor sum = sum_over(rows, project(x, weight, Parameter{}));
  return bias.value.defined() ? sum + bias.value.to(sum.scalar_type()) : sum;
}

at::Tensor look_up(const Parameter& table, const at::Tensor& ids) {
  return at::GradMode::is_enabled() && table.gradient.defined()
             ? EmbeddingFunction::apply(table.value, ids, table.gradient)
             : at::embedding(table.value, ids);
}

at::Tensor look_up_shared(const Parameter& table, std::int64_t vocab_size, const at::Tensor& ids,
                          const RankRows& rows) {
  if (!rows.ranks) return look_up(table, ids);
  const OwnTokens own = own_tokens(ids, first_own_row(vocab_size, rows.ranks), table.value.size(0));
  return sum_over(rows, look_up(table, own.rows).masked_fill(own.elsewhere.unsqueeze(1), 0));
}

RankRows rows_of(const MicroBatch& batch, const TensorRanks& ranks) {
  return rows_of_tokens(batch.num_tokens(), ranks);
}

ClassTokens::ClassTokens(const TransformerConfig& config, const MicroBatch& batch, const at::Device& device,
                         const TensorRanks& ranks)
    : num_tokens_(batch.num_tokens()), rows_{.ranks = ranks} {
  std::vector<std::int64_t> rows = class_rows(config, batch);
  if (const RankRows tokens = rows_of(batch, ranks); tokens.are_split()) {
    auto first = rows.begin();
    std::int64_t end = 0;
    for (const std::int64_t count : tokens.of_each) {
      const auto last = std::lower_bound(first, rows.end(), end += count);
      rows_.of_each.push_back(last - first);
      first = last;
    }
    num_tokens_ = tokens.count();
    rows = {rows.begin() + rows_.begin(), rows.begin() + rows_.begin() + rows_.count()};
    for (std::int64_t& row : rows) row -= tokens.begin();
  }
  own_ = to_device(at::tensor(rows, at::kLong), device);
}

at::Tensor ClassTokens::spread(const at::Tensor& x) const {
  return at::zeros({num_tokens_, x.size(1)}, x.options()).index_copy(0, own_, x);
}

NeededTokens::NeededTokens(const TransformerConfig& config, int layer, const MicroBatch& batch,
                           const at::Device& device, const TensorRanks& ranks)
    : tokens_(rows_of(batch, ranks)) {
  if (makes_one_token(config, layer)) class_tokens_.emplace(config, batch, device, ranks);
}

bool makes_one_token(const TransformerConfig& config, int layer) {
  const LayerKind kind = kind_of_layer(config, layer);
  return config.tells_class_from_one_token() && kind != LayerKind::embedding && kind != LayerKind::head &&
         block_of_layer(config, layer) + 1 == config.num_hidden_layers;
}

at::Tensor positions(const MicroBatch& batch, const RankRows& rows, const at::Device& device) {
  std::vector<std::int64_t> places;
  places.reserve(batch.num_tokens());
  for (const TokenRange& tokens : own_tokens_of(batch, rows))
    for (std::int64_t place = tokens.begin; place < tokens.end; ++place) places.push_back(place);
  return to_device(at::tensor(places, at::kLong), device);
}

at::Tensor apply_dropout(const TransformerConfig& config, int layer, DropoutSite site, const at::Tensor& x,
                         const MicroBatch& batch, const RankRows& rows) {
  if (!batch.dropout_keys.defined() || config.dropout == 0) return x;
  const std::int64_t row = x.numel() / std::max<std::int64_t>(1, x.size(0)), all = rows.num_rows(x.size(0));
  std::vector<SampleValues> values;
  if (!batch.sliced && all == batch.size()) {
    const std::int64_t begin = rows.are_split() ? rows.begin() : 0, end = begin + x.size(0);
    for (std::int64_t sample = 0; sample < all; ++sample)
      values.push_back({0, begin <= sample && sample < end ? row : 0});
  } else {
    for (const TokenRange& tokens : own_tokens_of(batch, rows))
      values.push_back({tokens.begin * row, tokens.count() * row});
  }
  return dropped(config, layer, site, x, batch.dropout_keys, values);
}

at::Tensor drop_attention(const TransformerConfig& config, int layer, const at::Tensor& weights, const at::Tensor& keys,
                          std::int64_t first_head) {
  const std::int64_t count = weights.numel() / keys.numel(), of_head = count / weights.size(1);
  const std::vector<SampleValues> values(keys.numel(), SampleValues{first_head * of_head, count});
  return dropped(config, layer, DropoutSite::attention, weights, keys, values);
}

at::Tensor attention_kept_of_slice(const TransformerConfig& config, int layer, const HeadRange& heads,
                                   const SliceQueries& slice, const at::Tensor& keys) {
  const std::int64_t samples = keys.numel(), length = slice.length;
  const TokenRange& queries = slice.queries;
  const at::Tensor kept = at::empty({samples, heads.count, queries.count(), queries.end}, at::kFloat);
  const Draw draw(config, layer, DropoutSite::attention, keys);
  float* out = kept.data_ptr<float>();
  for (std::int64_t sample = 0; sample < samples; ++sample)
    for (std::int64_t head = heads.first; head < heads.first + heads.count; ++head)
      for (std::int64_t query = queries.begin; query < queries.end; ++query)
        out = draw.write(sample, {(head * length + query) * length, queries.end}, out);
  return kept;
}

}  // namespace frostpipe
