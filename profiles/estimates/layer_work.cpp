#include "profiles/estimates/layer_work.h"

#include <algorithm>

#include "profiles/transformer/parameters.h"

namespace frostpipe {
namespace {

/// Number of parameters that every token, or every prediction of a head, is multiplied with.
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

/// 1 + 2 + ... + n, 0 for n < 1.
double sum_up_to(double n) { return n > 0 ? n * (n + 1) / 2 : 0; }

/// Number of (query, key) pairs that attention computes.
double attended_pairs(const TransformerConfig& config, double window, const PassTokens& span) {
  const double l = span.tokens, c = span.context, w = window > 0 ? window : l + c;
  if (config.is_causal) return sum_up_to(c + l) - sum_up_to(c) - sum_up_to(c + l - w) + sum_up_to(c - w);
  return l * l - 2 * sum_up_to(l - w);
}

/// Number of keys for which the probabilities of a query are kept.
double kept_keys(const TransformerConfig& config, double window, const PassTokens& span) {
  const double all = span.context + span.tokens;
  return window > 0 ? std::min(all, config.is_causal ? window : 2 * window - 1) : all;
}

LayerWork embedding_work(const TransformerConfig& config, const PassTokens& span) {
  const double t = span.tokens, h = static_cast<double>(config.hidden_size), values = t * h;
  const double products = 2 * product_parameters(config, /*layer=*/0);
  const double sums = config.has_embedding_norm ? 20 * values : 2 * values;
  return {.is_shared = false,
          .flops = config.reads_pictures ? products * (t - 1) : products * t + sums,
          .output_values = values,
          .kept_values = values,
          .split_values = values,
          .output_sums = !config.reads_pictures};
}

LayerWork attention_work(const TransformerConfig& config, int layer, const PassTokens& span) {
  const double t = span.tokens, values = t * static_cast<double>(config.hidden_size),
               q = t * static_cast<double>(config.query_size()), k = t * static_cast<double>(config.key_value_size()),
               context = t * static_cast<double>(config.context_size()), v = config.latent.value_size > 0 ? context : k,
               latents = t * static_cast<double>(config.latent.query_rank + config.latent.key_value_rank),
               window = static_cast<double>(config.pattern_of(block_of_layer(config, layer)).window),
               probabilities = static_cast<double>(config.num_attention_heads) * t * kept_keys(config, window, span);
  const double normed = config.query_key_norm == QueryKeyNorm::none ? 0 : q + k;
  return {.flops = 2 * t * product_parameters(config, layer) +
                   2 * attended_pairs(config, window, span) *
                       static_cast<double>(config.query_size() + config.context_size()),
          .output_values = values,
          .kept_values = (config.norm_place == NormPlace::before_and_after ? 4 : 3) * values + 2 * latents,
          .shared_kept_values = q + k + v + context + normed + 2 * probabilities,
          .split_values = 2 * values + 2 * latents,
          .shared_split_values = q + k + v + context,
          .read_split_values = values,
          .output_sums = 1,
          .input_gradient_sums = 1};
}

LayerWork mlp_work(const TransformerConfig& config, int layer, const PassTokens& span) {
  const Experts& experts = config.experts;
  const bool has_experts = config.has_experts(block_of_layer(config, layer));
  const auto width = static_cast<double>(
      has_experts ? experts.per_token * experts.intermediate_size + experts.shared_size : config.intermediate_size);
  const double t = span.tokens, values = t * static_cast<double>(config.hidden_size),
               inner = t * width * (config.has_gate ? 3 : 2),
               routed = has_experts ? static_cast<double>(experts.per_token) * values : 0;
  return {.flops = 2 * t * product_parameters(config, layer),
          .output_values = values,
          .kept_values = (config.norm_place == NormPlace::before_and_after ? 4 : 3) * values + 2 * routed,
          .shared_kept_values = inner,
          .split_values = 2 * values + 2 * routed,
          .shared_split_values = inner,
          .read_split_values = values,
          .routed_values = routed,
          .output_sums = 1,
          .input_gradient_sums = 1};
}

/// The work of both halves, which have one input and one output; attention's operations are those of all matrices of
/// the layer.
LayerWork parallel_block_work(const TransformerConfig& config, int layer, const PassTokens& span) {
  const LayerWork attention = attention_work(config, layer, span), mlp = mlp_work(config, layer, span);
  const double shared_input = attention.output_values;
  return {.flops = attention.flops,
          .output_values = attention.output_values,
          .kept_values = attention.kept_values + mlp.kept_values - shared_input,
          .shared_kept_values = attention.shared_kept_values + mlp.shared_kept_values,
          .split_values = attention.split_values + mlp.split_values,
          .shared_split_values = attention.shared_split_values + mlp.shared_split_values,
          .read_split_values = attention.read_split_values + mlp.read_split_values,
          .output_sums = attention.output_sums + mlp.output_sums,
          .input_gradient_sums = attention.input_gradient_sums + mlp.input_gradient_sums};
}

LayerWork head_work(const TransformerConfig& config, int layer, const PassTokens& span) {
  const bool is_vocabulary = config.task == Task::causal_language_modeling;
  const double t = span.tokens, h = static_cast<double>(config.hidden_size), predictions = config.tells_class() ? 1 : t,
               outputs = predictions * static_cast<double>(num_outputs(config));
  return {.is_shared = is_vocabulary,
          .flops = 2 * predictions * product_parameters(config, layer),
          .output_values = is_vocabulary ? 0 : outputs,
          .shared_output_values = is_vocabulary ? outputs : 0,
          .kept_values = t * h,
          .shared_kept_values = is_vocabulary ? outputs : 0,
          .split_values = predictions * h + (is_vocabulary ? 0 : outputs),
          .shared_split_values = is_vocabulary ? outputs : 0,
          .read_split_values = predictions * h,
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

}  // namespace frostpipe
