#include "profiles/estimates/layer_work.h"

#include <algorithm>
#include <vector>

#include "profiles/transformer/families.h"
#include "profiles/transformer/parameters.h"

namespace frostpipe {
namespace {

/// Returns the number of parameters that every token, or every prediction of a head, is multiplied with.
double product_parameters(const TransformerConfig& config, int layer) {
  double count = 0;
  for (const ParameterSpec& parameter : parameters_of(config, layer)) {
    if (!parameter.projects) continue;
    const bool is_of_experts = parameter.role == Role::experts_up || parameter.role == Role::experts_output;
    const double used =
        is_of_experts ? static_cast<double>(config.experts.per_token) / static_cast<double>(config.experts.count) : 1;
    count += used * static_cast<double>(parameter.count());
  }
  return count;
}

/// Returns 1 + 2 + ... + n; 0 for n < 1.
double sum_up_to(double n) { return n > 0 ? n * (n + 1) / 2 : 0; }

/// Returns the number of (query, key) pairs that attention computes.
double attended_pairs(const TransformerConfig& config, double window, const PassTokens& span) {
  const double l = span.tokens, c = span.context, w = window > 0 ? window : l + c;
  if (config.is_causal) return sum_up_to(c + l) - sum_up_to(c) - sum_up_to(c + l - w) + sum_up_to(c - w);
  return l * l - 2 * sum_up_to(l - w);
}

/// Returns the number of values that a norm of `rows` rows keeps beside its input: for each row the root mean square,
/// or mean and deviation.
double norm_numbers(const TransformerConfig& config, double rows) {
  return config.norm == NormKind::rms ? rows : 2 * rows;
}

/// Returns the number of values kept on every rank around a half of a block: its output, and inputs and outputs of its
/// norms and of a layer scale.
double kept_around_half(const TransformerConfig& config, int layer, Role norm, double t) {
  const std::vector<Role> roles = roles_of(config, layer);
  const auto has = [&](Role role) { return std::ranges::find(roles, role) != roles.end(); };
  const double norms = (has(norm) ? 1 : 0) + (has(Role::output_norm) ? 1 : 0), scales = has(Role::layer_scale) ? 1 : 0;
  return t * static_cast<double>(config.hidden_size) * (1 + norms + scales) + norm_numbers(config, t * norms);
}

LayerWork embedding_work(const TransformerConfig& config, const PassTokens& span) {
  const double t = span.tokens, values = t * static_cast<double>(config.hidden_size),
               of_tables = t * static_cast<double>(config.table_size()),
               pixels = static_cast<double>(config.num_channels * config.patch_size * config.patch_size),
               patches = t - static_cast<double>(config.num_class_tokens);
  const double products = 2 * product_parameters(config, /*layer=*/0);
  const double sums = config.has_embedding_norm ? 20 * values : 2 * values;
  const double beside = config.reads_pictures ? patches * pixels
                                              : (config.has_embedding_norm ? of_tables + norm_numbers(config, t) : 0) +
                                                    (config.embedding_size > 0 ? of_tables : 0);
  return {.is_shared = false,
          .flops = config.reads_pictures ? products * patches : products * t + sums,
          .output_values = values,
          .kept_values = values + beside,
          .split_values = values,
          .output_sums = !config.reads_pictures};
}

/// The values that attention keeps of queries, keys and values, and those that its backward needs in addition.
struct AttentionValues {
  double kept = 0, workspace = 0;
};

AttentionValues attention_values(const TransformerConfig& config, const PassTokens& span) {
  const double t = span.tokens, heads = static_cast<double>(config.num_attention_heads),
               q = t * static_cast<double>(config.query_size()), k = t * static_cast<double>(config.key_value_size()),
               context = t * static_cast<double>(config.context_size()), v = config.latent.value_size > 0 ? context : k,
               all_keys = (k + v) * (span.context + t) / t, pairs = heads * t * (span.context + t);
  AttentionValues values{.kept = q + context, .workspace = context + 2 * q + k + v + all_keys};
  if (config.attention_soft_cap > 0) {
    if (!span.is_slice) values.kept += 2 * q + 2 * pairs;
    values.workspace += (span.is_slice ? 7 : 2) * pairs;  // a slice computes its probabilities again
  } else {
    values.kept += t * heads + (span.is_slice ? 0 : k + v);
  }
  if (config.query_key_norm != QueryKeyNorm::none) values.kept += q + k + v;
  return values;
}

LayerWork attention_work(const TransformerConfig& config, int layer, const PassTokens& span) {
  const double t = span.tokens, values = t * static_cast<double>(config.hidden_size),
               q = t * static_cast<double>(config.query_size()), k = t * static_cast<double>(config.key_value_size()),
               context = t * static_cast<double>(config.context_size()), v = config.latent.value_size > 0 ? context : k,
               latents = t * static_cast<double>(config.latent.query_rank + config.latent.key_value_rank);
  const AttentionPattern pattern = config.pattern_of(block_of_layer(config, layer));
  const AttentionValues within = attention_values(config, span);
  const std::int64_t may_turn = config.latent.rotary_size > 0 ? config.latent.rotary_size : config.size_of_head();
  const double turned =
      pattern.rotary < 0 ? 0 : t * static_cast<double>(config.rotaries[pattern.rotary].size(may_turn));
  const double of_pairs = 2 * attended_pairs(config, static_cast<double>(pattern.window), span) *
                          static_cast<double>(config.query_size() + config.context_size());
  return {.flops = 2 * t * product_parameters(config, layer) + of_pairs,
          .weightless_flops = of_pairs,
          .output_values = values,
          .kept_values = kept_around_half(config, layer, Role::norm, t) + turned + 2 * latents,
          .shared_kept_values = within.kept,
          .shared_workspace_values = within.workspace,
          .split_values = 2 * values + 2 * latents,
          .shared_split_values = q + k + v + context,
          .read_split_values = values,
          .output_sums = 1,
          .input_gradient_sums = 1};
}

LayerWork mlp_work(const TransformerConfig& config, int layer, const PassTokens& span) {
  const Experts& experts = config.experts;
  const bool has_experts = config.has_experts(block_of_layer(config, layer)),
             keeps_activated_only = config.activation == Activation::relu && !config.has_gate;
  const auto width = static_cast<double>(
      has_experts ? experts.per_token * experts.intermediate_size + experts.shared_size : config.intermediate_size);
  const double t = span.tokens, values = t * static_cast<double>(config.hidden_size), f = t * width,
               inner = f * (config.has_gate ? 3 : 2),
               routed = has_experts ? static_cast<double>(experts.per_token) * values : 0;
  return {.flops = 2 * t * product_parameters(config, layer),
          .output_values = values,
          .kept_values = kept_around_half(config, layer, Role::mlp_norm, t) + 2 * routed,
          .shared_kept_values = keeps_activated_only ? f : inner,
          .shared_workspace_values = config.has_gate ? 4 * f : f,
          .split_values = 2 * values + 2 * routed,
          .shared_split_values = inner,
          .read_split_values = values,
          .routed_values = routed,
          .output_sums = 1,
          .input_gradient_sums = 1};
}

/// Returns the work of both halves, which have one output and one gradient of it; attention's operations are those of
/// all matrices of the layer.
LayerWork parallel_block_work(const TransformerConfig& config, int layer, const PassTokens& span) {
  const LayerWork attention = attention_work(config, layer, span), mlp = mlp_work(config, layer, span);
  const double output = attention.output_values;
  return {.flops = attention.flops,
          .weightless_flops = attention.weightless_flops,
          .output_values = output,
          .kept_values = attention.kept_values + mlp.kept_values - output,
          .shared_kept_values = attention.shared_kept_values + mlp.shared_kept_values,
          .shared_workspace_values = std::max(attention.shared_workspace_values, mlp.shared_workspace_values),
          .split_values = attention.split_values + mlp.split_values - output,
          .shared_split_values = attention.shared_split_values + mlp.shared_split_values,
          .read_split_values = attention.read_split_values + mlp.read_split_values,
          .output_sums = attention.output_sums + mlp.output_sums,
          .input_gradient_sums = attention.input_gradient_sums + mlp.input_gradient_sums};
}

/// Returns the head's work. The loss is computed with the head, so its output is one number.
LayerWork head_work(const TransformerConfig& config, int layer, const PassTokens& span) {
  const bool is_vocabulary = config.task == Task::causal_language_modeling;
  const HeadNames& head = head_of(config);
  const bool keeps_activated_only =
      head.dense_activation == Activation::tanh || head.dense_activation == Activation::relu;
  const double h = static_cast<double>(config.hidden_size), predictions = config.tells_class() ? 1 : span.tokens,
               outputs = static_cast<double>(num_outputs(config)), of_dense = head.dense ? predictions * h : 0,
               normed_tokens = config.pools_tokens ? span.tokens : predictions,
               normed = config.has_final_norm ? normed_tokens * h + norm_numbers(config, normed_tokens) : 0,
               dense = of_dense * ((keeps_activated_only ? 1 : 2) + (head.dense_norm ? 1 : 0));
  return {.is_shared = is_vocabulary,
          .flops = 2 * predictions * product_parameters(config, layer),
          .is_backward_whole = is_vocabulary,
          .kept_values = normed + dense + (is_vocabulary ? 0 : 2 * predictions * outputs),
          .logits_values = is_vocabulary ? 2 * outputs : 0,
          .split_values = is_vocabulary ? 0 : predictions * (h + outputs) + 2 * of_dense,
          .read_split_values = is_vocabulary ? 0 : predictions * h + of_dense,
          .input_gradient_sums = is_vocabulary,
          .token_sums = is_vocabulary ? 3 : 0};
}

}  // namespace

LayerWork layer_work(const TransformerConfig& config, int layer, const PassTokens& span) {
  switch (kind_of_layer(config, layer)) {
    case LayerKind::embedding:
      return embedding_work(config, span);
    case LayerKind::attention:
      return attention_work(config, layer, span);
    case LayerKind::mlp:
      return mlp_work(config, layer, span);
    case LayerKind::block:
      return parallel_block_work(config, layer, span);
    default:
      return head_work(config, layer, span);
  }
}

double forward_flops(const TransformerConfig& config, int tokens) {
  double flops = 0;
  for (int layer = 0; layer < num_layers(config); ++layer) flops += layer_work(config, layer, {tokens}).flops;
  return flops;
}

}  // namespace frostpipe
