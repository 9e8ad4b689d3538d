#include "executor/models/layers.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include "executor/device/to_device.h"
#include "executor/models/attention.h"
#include "executor/models/collectives/collectives.h"
#include "executor/models/logits.h"
#include "executor/models/norms.h"
#include "profiles/transformer/families.h"

// This file computes each kind of layer for all families; TransformerConfig describes how families differ.

namespace frostpipe {
namespace {

/// The call of one layer for a micro-batch on one rank.
struct LayerCall {
  const TransformerConfig& config;
  int layer;
  LayerParameters parameters;
  const MicroBatch& batch;
  const TensorRanks& ranks;

  at::Tensor normed(const at::Tensor& x, Role scale = Role::norm, Role bias = Role::norm_bias) const {
    return parameters.has(scale) ? norm(config, x, parameters[scale], parameters[bias]) : x;
  }
  at::Tensor dropped(const at::Tensor& x, const RankRows& rows, DropoutSite site = DropoutSite::output) const {
    return apply_dropout(config, layer, site, x, batch, rows);
  }
};

/// Returns this rank's class tokens and patches, in order -> [own tokens, hidden]. `patches` has the patches of all
/// samples; `places` has the position of each own token in its sample.
at::Tensor own_patches(const LayerCall& call, const at::Tensor& patches, const at::Tensor& places,
                       const RankRows& rows) {
  const std::int64_t num_patches = call.config.num_patches(), num_class_tokens = call.config.num_class_tokens;
  const at::Tensor class_tokens = call.parameters[Role::class_token].value.to(patches.scalar_type());
  const std::vector<std::int64_t> place(places.data_ptr<std::int64_t>(),
                                        places.data_ptr<std::int64_t>() + places.numel());
  std::vector<std::int64_t> from, own;  // rows in the list (class tokens, own patches); own patches' numbers
  for (std::size_t i = 0; i < place.size(); ++i) {
    const std::int64_t sample = (rows.begin() + static_cast<std::int64_t>(i)) / (num_patches + num_class_tokens);
    if (place[i] >= num_class_tokens) own.push_back(sample * num_patches + place[i] - num_class_tokens);
    from.push_back(place[i] >= num_class_tokens ? num_class_tokens - 1 + static_cast<std::int64_t>(own.size())
                                                : place[i]);
  }
  const auto on_device = [&](const std::vector<std::int64_t>& list) {
    return to_device(at::tensor(list, at::kLong), patches.device());
  };
  const at::Tensor projected = project(patches.flatten(0, 1).index_select(0, on_device(own)),
                                       call.parameters[Role::patches], call.parameters[Role::patches_bias]);
  return at::cat({class_tokens, projected}).index_select(0, on_device(from));
}

at::Tensor embed_pictures(const LayerCall& call) {
  const TransformerConfig& c = call.config;
  const MicroBatch& batch = call.batch;
  const LayerParameters& p = call.parameters;
  const std::int64_t samples = batch.input.size(0), side = c.image_size / c.patch_size, size = c.patch_size;
  // [samples, channels, rows, size, columns, size] -> a row per patch, in the order of the convolution's weights.
  const at::Tensor patches = batch.input.to(batch.type)
                                 .view({samples, c.num_channels, side, size, side, size})
                                 .permute({0, 2, 4, 1, 3, 5})
                                 .reshape({samples, side * side, -1});
  const RankRows rows = rows_of(batch, call.ranks);
  if (rows.are_split()) {
    const at::Tensor places = positions(batch, rows, at::kCPU);
    const at::Tensor tokens =
        own_patches(call, patches, places, rows) + look_up(p[Role::positions], to_device(places, patches.device()));
    return call.dropped(tokens.to(batch.type), rows);
  }
  const at::Tensor tokens = at::cat(
      {p[Role::class_token].value.to(patches.scalar_type()).expand({samples, c.num_class_tokens, c.hidden_size}),
       project(patches, p[Role::patches], p[Role::patches_bias])},
      1);
  return call.dropped((tokens + p[Role::positions].value).flatten(0, 1).to(batch.type), rows);
}

at::Tensor embed_texts(const LayerCall& call) {
  const TransformerConfig& c = call.config;
  const MicroBatch& batch = call.batch;
  const LayerParameters& p = call.parameters;
  const RankRows rows = rows_of(batch, call.ranks);
  at::Tensor sum = look_up_shared(p[Role::words], c.vocab_size, batch.input, rows);
  if (c.embedding_factor != 1) sum = sum * c.embedding_factor;
  if (p.has(Role::positions)) {
    const at::Tensor places = positions(batch, rows, batch.input.device());
    // `places` is not changed in place, because every replay of a CUDA graph reads the same tensor (DeviceCopies).
    sum = sum + look_up(p[Role::positions], c.position_offset > 0 ? places + c.position_offset : places);
  }
  if (p.has(Role::types))
    sum = sum + (batch.token_types.defined() && c.type_vocab_size > 1
                     ? look_up(p[Role::types], rows.own(batch.token_types))
                     : p[Role::types].value.select(0, 0));
  sum = call.normed(sum);
  if (p.has(Role::projection))
    return project(call.dropped(sum.to(batch.type), rows), p[Role::projection], p[Role::projection_bias]);
  return call.dropped(sum.to(batch.type), rows);
}

/// The roles of the norm of half a block.
struct HalfNorm {
  Role scale, bias;
};
constexpr HalfNorm kNormOfAttention{Role::norm, Role::norm_bias}, kNormOfMlp{Role::mlp_norm, Role::mlp_norm_bias};

/// Returns the input of the attention or MLP of half a block: x, normed if the norm comes before them.
at::Tensor input_of_half(const LayerCall& call, const at::Tensor& x, const HalfNorm& norm) {
  return call.config.norm_place == NormPlace::after_sum ? x : call.normed(x, norm.scale, norm.bias);
}

/// Returns the output of attention for the needed tokens of x, before its norm, scale and dropout. [own tokens, hidden]
/// -> [own needed tokens, hidden]
at::Tensor attended(const LayerCall& call, const at::Tensor& x, const NeededTokens& needed) {
  const TransformerConfig& c = call.config;
  const LayerParameters& p = call.parameters;
  const AttentionInput input =
      attention_input(c, call.layer, input_of_half(call, x, kNormOfAttention), p, call.batch, needed);
  const at::Tensor mixed = attend(c, call.layer, input, call.batch);
  return project_rows(mixed, p[Role::output], p[Role::output_bias], needed.rows());
}

/// Returns the output of the MLP for the needed tokens `from`, before its norm, scale and dropout. [own needed tokens,
/// hidden] -> the same
at::Tensor transformed(const LayerCall& call, const at::Tensor& from, const RankRows& rows) {
  const TransformerConfig& c = call.config;
  const LayerParameters& p = call.parameters;
  const at::Tensor up = project_columns(input_of_half(call, from, kNormOfMlp), p[Role::up], p[Role::up_bias], rows);
  const at::Tensor inner = c.has_gate ? gated(c.activation, up) : activated(c.activation, up);
  return project_rows(inner, p[Role::down], p[Role::down_bias], rows);
}

/// Scales, norms and drops out `added`, the output of the attention or MLP, and adds it to `given`, the input of the
/// half block. [own needed tokens, hidden] each -> [own tokens, hidden]
at::Tensor joined_half(const LayerCall& call, const NeededTokens& needed, const at::Tensor& given, at::Tensor added,
                       const HalfNorm& norm) {
  if (call.parameters.has(Role::layer_scale))
    added = added * call.parameters[Role::layer_scale].value.to(added.scalar_type());
  if (call.config.residual_factor != 1) added = added * call.config.residual_factor;
  added = call.dropped(call.normed(added, Role::output_norm, Role::output_norm_bias), needed.rows());
  const at::Tensor sum = given + added;
  return needed.spread(call.config.norm_place == NormPlace::after_sum ? call.normed(sum, norm.scale, norm.bias) : sum);
}

at::Tensor attention(const LayerCall& call, const at::Tensor& x) {
  const NeededTokens needed(call.config, call.layer, call.batch, x.device(), call.ranks);
  return joined_half(call, needed, needed.of(x), attended(call, x, needed), kNormOfAttention);
}

at::Tensor mlp(const LayerCall& call, const at::Tensor& x) {
  const NeededTokens needed(call.config, call.layer, call.batch, x.device(), call.ranks);
  const at::Tensor from = needed.of(x);
  return joined_half(call, needed, from, transformed(call, from, needed.rows()), kNormOfMlp);
}

/// Computes a block whose attention and MLP both read its input.
at::Tensor parallel_block(const LayerCall& call, const at::Tensor& x) {
  const NeededTokens needed(call.config, call.layer, call.batch, x.device(), call.ranks);
  const RankRows& rows = needed.rows();
  const at::Tensor from = needed.of(x);
  return needed.spread(from + call.dropped(attended(call, x, needed), rows) +
                       call.dropped(transformed(call, from, rows), rows, DropoutSite::mlp_output));
}

/// Returns the normed tokens of all samples, of which a part is pooled on each tensor rank: its samples', as
/// ClassTokens::rows() divides them. [own tokens, hidden] -> [tokens, hidden]
at::Tensor normed_tokens(const LayerCall& call, const at::Tensor& x) {
  const RankRows rows = rows_of(call.batch, call.ranks);
  const at::Tensor normed = call.normed(x);
  return rows.are_split() ? shared_rows(rows, normed) : normed;
}

/// Classifies pictures by the class token, concatenated with the mean of the patches. [own tokens, hidden] -> [samples,
/// labels]
at::Tensor classes_of_pictures(const LayerCall& call, const at::Tensor& x) {
  const TransformerConfig& c = call.config;
  const at::Tensor pictures = normed_tokens(call, x).view({call.batch.size(), image_tokens(c), c.hidden_size});
  const at::Tensor pooled =
      at::cat({pictures.select(1, 0), pictures.narrow(1, c.num_class_tokens, c.num_patches()).mean(1)}, 1);
  const RankRows samples = ClassTokens(c, call.batch, x.device(), call.ranks).rows();
  return all_of(samples, project(samples.are_split() ? samples.own(pooled) : pooled, call.parameters[Role::classes],
                                 call.parameters[Role::classes_bias]));
}

/// Returns the mean of each text's tokens, after the norm. [own tokens, hidden] -> [own samples, hidden]
at::Tensor means_of_texts(const LayerCall& call, const at::Tensor& x, const RankRows& samples) {
  const at::Tensor tokens = normed_tokens(call, x);
  std::vector<at::Tensor> means;
  for (const at::Tensor& text : tokens.split_with_sizes(call.batch.lengths)) means.push_back(text.mean(0));
  const at::Tensor all = means.empty() ? tokens : at::stack(means);  // stack() refuses an empty micro-batch
  return samples.are_split() ? samples.own(all) : all;
}

Logits head(const LayerCall& call, const at::Tensor& x) {
  const TransformerConfig& c = call.config;
  const LayerParameters& p = call.parameters;
  if (c.task == Task::causal_language_modeling) {
    const at::Tensor normed = call.normed(x);
    return {c.logits_factor == 1 ? normed : normed * c.logits_factor, p[Role::classes], p[Role::classes_bias],
            c.logits_soft_cap, rows_of(call.batch, call.ranks)};
  }
  const HeadNames& names = head_of(c);
  /// Returns the logits of normed tokens. `rows` says which of them each tensor rank has.
  const auto said = [&](at::Tensor said, const RankRows& rows) {
    if (names.dense) {
      said = activated(names.dense_activation, project(said, p[Role::dense], p[Role::dense_bias]));
      said = call.normed(said, Role::dense_norm, Role::dense_norm_bias);
    }
    if (names.dense || c.task == Task::token_classification) said = call.dropped(said, rows);
    return all_of(rows, project(said, p[Role::classes], p[Role::classes_bias]));
  };
  if (c.pools_patches) return classes_of_pictures(call, x);
  if (!c.tells_class()) return said(call.normed(x), rows_of(call.batch, call.ranks));
  const ClassTokens tokens(c, call.batch, x.device(), call.ranks);
  return said(c.pools_tokens ? means_of_texts(call, x, tokens.rows()) : call.normed(tokens.of(x)), tokens.rows());
}

}  // namespace

Logits forward_head(const TransformerConfig& config, std::span<const Parameter> parameters, const at::Tensor& input,
                    const MicroBatch& batch, const TensorRanks& tensor_ranks) {
  const int layer = num_layers(config) - 1;
  return head({config, layer, LayerParameters(config, layer, parameters), batch, tensor_ranks}, input);
}

at::Tensor forward_layer(const TransformerConfig& config, int layer, std::span<const Parameter> parameters,
                         const at::Tensor& input, const MicroBatch& batch, const TensorRanks& tensor_ranks) {
  const LayerCall call{config, layer, LayerParameters(config, layer, parameters), batch, tensor_ranks};
  switch (kind_of_layer(config, layer)) {
    case LayerKind::embedding:
      return config.reads_pictures ? embed_pictures(call) : embed_texts(call);
    case LayerKind::attention:
      return attention(call, input);
    case LayerKind::mlp:
      return mlp(call, input);
    case LayerKind::block:
      return parallel_block(call, input);
    default:
      return head(call, input).all();
  }
}

}  // namespace frostpipe
