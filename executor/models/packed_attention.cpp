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

#include <optional>
#include <tuple>

#include "executor/device/to_device.h"

namespace frostpipe {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::tensor_list;
using torch::autograd::variable_list;

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

std::int64_t head_size_of(const AttentionInput& input, std::int64_t num_heads) {
  return input.query.size(1) / num_heads / (input.key_value.defined() ? 1 : 3);
}

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

Heads heads_of(const AttentionInput& rows, const EqualLengths& group, std::int64_t num_heads) {
  // The backward of an unbind before the transposes writes all gradients into one tensor, laid out as the projection's
  // output, which needs no further copy.
  const auto by_head = [&](const at::Tensor& tensor, std::int64_t length, std::int64_t parts) {
    std::vector<at::Tensor> heads =
        tensor.view({group.samples, length, parts, num_heads, tensor.size(1) / parts / num_heads}).unbind(2);
    for (at::Tensor& part : heads) part = part.transpose(1, 2);
    return heads;
  };
  if (!rows.key_value.defined()) {
    const std::vector<at::Tensor> all = by_head(rows.query, group.length, 3);
    return {all[0], all[1], all[2]};
  }
  const std::vector<at::Tensor> both = by_head(rows.key_value, group.length, 2);
  return {by_head(rows.query, 1, 1)[0], both[0], both[1]};
}

at::Tensor attend_in_one(const AttentionInput& input, const std::vector<std::int64_t>& lengths, std::int64_t num_heads,
                         bool is_causal) {
  const auto key_value = input.key_value.defined() ? std::optional(input.key_value) : std::nullopt;
  return PackedAttention::apply(input.query, key_value, lengths, num_heads, is_causal);
}

bool has_kernel_for_packed(const AttentionInput& input, std::int64_t num_heads) {
  const std::int64_t size = head_size_of(input, num_heads);
  if (!input.query.is_cuda()) return false;
  if (input.query.scalar_type() == at::kBFloat16) return size % 8 == 0 && size <= 256;  // flash attention's
  return input.query.scalar_type() == at::kFloat && size % 4 == 0;                      // memory-efficient attention's
}

at::Tensor attend_by_kernel(const AttentionInput& input, const MicroBatch& batch, std::int64_t num_heads,
                            bool is_causal) {
  const bool has_one_query = input.key_value.defined();
  const std::int64_t size = head_size_of(input, num_heads), longest = *std::ranges::max_element(batch.lengths),
                     longest_query = has_one_query ? 1 : longest;
  const auto by_head = [&](const at::Tensor& all) { return all.view({all.size(0), -1, num_heads, size}).unbind(1); };
  std::vector<at::Tensor> parts = by_head(input.query);
  if (has_one_query) {
    const std::vector<at::Tensor> others = by_head(input.key_value);
    parts.insert(parts.end(), others.begin(), others.end());
  }
  const at::Tensor &query = parts[0], &key = parts[1], &value = parts[2], begins = begins_of(batch, query.device()),
                   query_begins = has_one_query ? at::arange(begins.size(0), begins.options()) : begins;
  at::Tensor output;
  if (query.scalar_type() == at::kBFloat16) {
    output = std::get<0>(at::_flash_attention_forward(query, key, value, query_begins, begins, longest_query, longest,
                                                      /*dropout_p=*/0.0, is_causal, /*return_debug_mask=*/false));
  } else {
    constexpr int kAll = 0, kCausal = 1;  // of CustomMaskType: from the first token on, of as many queries as keys
    const bool trains = at::GradMode::is_enabled() && query.requires_grad();
    output = std::get<0>(at::_efficient_attention_forward(query.unsqueeze(0), key.unsqueeze(0), value.unsqueeze(0),
                                                          /*bias=*/{}, query_begins, begins, longest_query, longest,
                                                          /*dropout_p=*/0.0, is_causal ? kCausal : kAll, trains))
                 .squeeze(0);
  }
  return output.reshape({query.size(0), num_heads * size});
}

}  // namespace frostpipe
