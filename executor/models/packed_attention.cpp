#include "executor/models/packed_attention.h"

#include <ATen/ops/_efficient_attention_forward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/tensor.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include <optional>
#include <tuple>

#include "executor/device/to_device.h"

namespace frostpipe {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::tensor_list;
using torch::autograd::variable_list;

/// Returns the rows of a packed input, or of its gradient, that belong to a group.
AttentionInput rows_of(const AttentionInput& input, const EqualLengths& group) {
  const auto of_tokens = [&](const at::Tensor& all) { return all.narrow(0, group.first_token, group.tokens()); };
  return {
      .query = input.has_one_query ? input.query.narrow(0, group.first_sample, group.samples) : of_tokens(input.query),
      .key_value = input.key_value.defined() ? of_tokens(input.key_value) : at::Tensor(),
      .has_one_query = input.has_one_query};
}

at::Tensor output_of(const at::Tensor& output, bool has_one_query, const EqualLengths& group, std::int64_t head_size) {
  const at::Tensor rows = has_one_query ? output.narrow(0, group.first_sample, group.samples)
                                        : output.narrow(0, group.first_token, group.tokens());
  return rows.view({group.samples, -1, output.size(1) / head_size, head_size}).transpose(1, 2);
}

/// The arguments of PackedAttention that are not tensors.
struct PackedSettings : torch::CustomClassHolder {
  AttentionRule rule;
  std::vector<std::int64_t> lengths;
  bool has_one_query = false;

  /// Returns the mask that the fused attention adds to a group's scores; nothing if is_causal suffices or nothing is
  /// masked.
  std::optional<at::Tensor> mask(const EqualLengths& group, const at::TensorOptions& options) const {
    if (!rule.hides(group.length)) return std::nullopt;
    return added_mask(rule, all_queries(rule, group.length, has_one_query), options);
  }
  bool is_causal(const EqualLengths& group) const {
    return rule.is_causal && !has_one_query && !rule.hides(group.length);
  }
};

struct PackedAttention : Function<PackedAttention> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& query,
                            const std::optional<at::Tensor>& key_value,
                            const c10::intrusive_ptr<PackedSettings>& settings) {
    const AttentionRule& rule = settings->rule;
    const AttentionInput input{
        .query = query, .key_value = key_value.value_or(at::Tensor()), .has_one_query = settings->has_one_query};
    const std::vector<EqualLengths> groups = groups_of(settings->lengths);
    const at::TensorOptions options = query.options().requires_grad(false);
    const at::Tensor output = at::empty({query.size(0), rule.num_heads(input) * rule.head_size}, options);
    variable_list saved(groups.size());
    for_groups(groups, [&](int i) {
      const Heads heads = heads_of(rows_of(input, groups[i]), groups[i], rule);
      const auto [mixed, log_sum] = at::_scaled_dot_product_flash_attention_for_cpu(
          heads.query, heads.key, heads.value, /*dropout_p=*/0.0, settings->is_causal(groups[i]),
          settings->mask(groups[i], options), rule.scale);
      output_of(output, input.has_one_query, groups[i], rule.head_size).copy_(mixed);
      saved[i] = log_sum;
    });
    saved.insert(saved.end(), {query, input.key_value, output});
    context->save_for_backward(saved);
    context->saved_data["settings"] = c10::IValue::make_capsule(settings);
    return output;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const auto capsule = context->saved_data["settings"].toCapsule();
    const auto& settings = static_cast<const PackedSettings&>(*capsule);
    const AttentionRule& rule = settings.rule;
    const std::vector<EqualLengths> groups = groups_of(settings.lengths);
    const std::size_t count = groups.size();
    const bool has_one_query = settings.has_one_query;
    const AttentionInput input{.query = saved[count], .key_value = saved[count + 1], .has_one_query = has_one_query};
    const at::Tensor output = saved[count + 2], output_gradient = gradients[0].contiguous();
    const AttentionInput gradient{
        .query = at::empty_like(input.query),
        .key_value = input.key_value.defined() ? at::empty_like(input.key_value) : at::Tensor(),
        .has_one_query = has_one_query};
    const at::TensorOptions options = output.options().requires_grad(false);
    for_groups(groups, [&](int i) {
      const EqualLengths& group = groups[i];
      const Heads heads = heads_of(rows_of(input, group), group, rule);
      const auto [query, key, value] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
          output_of(output_gradient, has_one_query, group, rule.head_size), heads.query, heads.key, heads.value,
          output_of(output, has_one_query, group, rule.head_size), saved[i], /*dropout_p=*/0.0,
          settings.is_causal(group), settings.mask(group, options), rule.scale);
      const Heads into = heads_of(rows_of(gradient, group), group, rule);
      into.query.copy_(query);
      into.key.copy_(key);
      into.value.copy_(value);
    });
    return {gradient.query, gradient.key_value, at::Tensor()};
  }
};

at::Tensor begins_of(const MicroBatch& batch, const at::Device& device) {
  return batch.begins.defined() ? batch.begins : to_device(at::tensor(batch.offsets(), at::kInt), device);
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

at::Tensor for_all_queries(const at::Tensor& of_key_heads, std::int64_t num_heads) {
  const std::int64_t shared_by = num_heads / of_key_heads.size(1);
  return shared_by == 1 ? of_key_heads : of_key_heads.repeat_interleave(shared_by, 1, num_heads);
}

Heads heads_of(const AttentionInput& rows, const EqualLengths& group, const AttentionRule& rule) {
  // Unbinding before the transposes makes the backward write all gradients into one tensor with the layout of the
  // projection's output, without another copy.
  const auto by_head = [&](const at::Tensor& tensor, std::int64_t length, std::int64_t parts) {
    std::vector<at::Tensor> heads =
        tensor.view({group.samples, length, parts, tensor.size(1) / parts / rule.head_size, rule.head_size}).unbind(2);
    for (at::Tensor& part : heads) part = part.transpose(1, 2);
    return heads;
  };
  if (!rows.key_value.defined()) {
    const std::vector<at::Tensor> all = by_head(rows.query, group.length, 3);
    return {all[0], all[1], all[2]};
  }
  const std::vector<at::Tensor> both = by_head(rows.key_value, group.length, 2);
  return {by_head(rows.query, rows.has_one_query ? 1 : group.length, 1)[0], both[0], both[1]};
}

at::Tensor attend_in_one(const AttentionInput& input, const std::vector<std::int64_t>& lengths,
                         const AttentionRule& rule) {
  auto settings = c10::make_intrusive<PackedSettings>();
  settings->rule = rule;
  settings->lengths = lengths;
  settings->has_one_query = input.has_one_query;
  const auto key_value = input.key_value.defined() ? std::optional(input.key_value) : std::nullopt;
  return PackedAttention::apply(input.query, key_value, settings);
}

bool has_kernel_for_packed(const AttentionInput& input, const AttentionRule& rule) {
  const std::int64_t size = rule.head_size;
  if (!input.query.is_cuda() || rule.num_heads(input) != rule.num_key_value_heads(input)) return false;
  if (input.query.scalar_type() == at::kBFloat16) return size % 8 == 0 && size <= 256;  // conditions of flash attention
  return input.query.scalar_type() == at::kFloat && size % 4 == 0;  // conditions of memory-efficient attention
}

at::Tensor attend_by_kernel(const AttentionInput& input, const MicroBatch& batch, const AttentionRule& rule) {
  const bool has_one_query = input.has_one_query, is_causal = rule.is_causal && !has_one_query;
  const std::int64_t size = rule.head_size, longest = *std::ranges::max_element(batch.lengths),
                     longest_query = has_one_query ? 1 : longest;
  const auto by_head = [&](const at::Tensor& all, std::int64_t parts) {
    return all.view({all.size(0), parts, -1, size}).unbind(1);
  };
  std::vector<at::Tensor> parts = by_head(input.query, input.key_value.defined() ? 1 : 3);
  if (input.key_value.defined()) {
    const std::vector<at::Tensor> others = by_head(input.key_value, 2);
    parts.insert(parts.end(), others.begin(), others.end());
  }
  const at::Tensor &query = parts[0], &key = parts[1], &value = parts[2], begins = begins_of(batch, query.device()),
                   query_begins = has_one_query ? at::arange(begins.size(0), begins.options()) : begins;
  at::Tensor output;
  if (query.scalar_type() == at::kBFloat16) {
    output = std::get<0>(at::_flash_attention_forward(query, key, value, query_begins, begins, longest_query, longest,
                                                      /*dropout_p=*/0.0, is_causal, /*return_debug_mask=*/false,
                                                      rule.scale));
  } else {
    constexpr int kAll = 0, kCausal = 1;  // values of CustomMaskType
    const bool trains = at::GradMode::is_enabled() && query.requires_grad();
    output =
        std::get<0>(at::_efficient_attention_forward(query.unsqueeze(0), key.unsqueeze(0), value.unsqueeze(0),
                                                     /*bias=*/{}, query_begins, begins, longest_query, longest,
                                                     /*dropout_p=*/0.0, is_causal ? kCausal : kAll, trains, rule.scale))
            .squeeze(0);
  }
  return output.reshape({query.size(0), rule.num_heads(input) * size});
}

}  // namespace frostpipe
