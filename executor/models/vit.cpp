#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/tensor.h>

#include "executor/device/to_device.h"
#include "executor/models/attention.h"
#include "executor/models/collectives/collectives.h"
#include "executor/models/families.h"

// Dosovitskiy et al. 2021: patches of an image as tokens after a class token; norms stand before each half of a block.

namespace frostpipe {
namespace {

std::string block_name(int block) { return "vit.encoder.layer." + std::to_string(block) + "."; }

std::vector<ParameterSpec> embedding_parameters(const TransformerConfig& c) {
  const std::string e = "vit.embeddings.";
  const std::int64_t h = c.hidden_size, p = c.patch_size;
  ParameterSpec patches = matrix_spec({e + "patch_embeddings.projection.weight"}, h, c.num_channels * p * p);
  patches.stored_shape = {h, c.num_channels, p, p};
  ParameterSpec positions = table_spec(e + "position_embeddings", c.num_patches() + 1, h);
  positions.stored_shape = {1, c.num_patches() + 1, h};
  ParameterSpec class_token = table_spec(e + "cls_token", 1, h);
  class_token.stored_shape = {1, 1, h};
  return {patches, positions, class_token, bias_spec({e + "patch_embeddings.projection.bias"}, h)};
}

std::vector<ParameterSpec> attention_parameters(const TransformerConfig& c, int block) {
  const std::int64_t h = c.hidden_size;
  const std::string b = block_name(block), a = b + "attention.attention.";
  std::vector<ParameterSpec> specs{
      by_rows_of_heads(c, matrix_spec({a + "query.weight", a + "key.weight", a + "value.weight"}, 3 * h, h)),
      by_columns_of_heads(c, matrix_spec({b + "attention.output.dense.weight"}, h, h)),
      bias_spec({b + "attention.output.dense.bias"}, h), scale_spec(b + "layernorm_before.weight", h),
      bias_spec({b + "layernorm_before.bias"}, h)};
  if (c.has_qkv_bias)
    specs.push_back(by_rows_of_heads(c, bias_spec({a + "query.bias", a + "key.bias", a + "value.bias"}, 3 * h)));
  return specs;
}

std::vector<ParameterSpec> mlp_parameters(const TransformerConfig& c, int block) {
  return dense_mlp_specs(c, block_name(block), "layernorm_after");
}

std::vector<ParameterSpec> head_parameters(const TransformerConfig& c) {
  return {matrix_spec({"classifier.weight"}, c.num_labels, c.hidden_size), bias_spec({"classifier.bias"}, c.num_labels),
          scale_spec("vit.layernorm.weight", c.hidden_size), bias_spec({"vit.layernorm.bias"}, c.hidden_size)};
}

/// The class token and the patches of the own tokens, each in its place; `patches`: of all samples. [own tokens,
/// hidden]
at::Tensor own_patches(const TransformerConfig& c, std::span<const Parameter> p, const at::Tensor& patches,
                       const at::Tensor& places, const RankRows& rows) {
  const at::Tensor class_token = p[2].value.to(patches.scalar_type());
  const std::vector<std::int64_t> place(places.data_ptr<std::int64_t>(),
                                        places.data_ptr<std::int64_t>() + places.numel());
  std::vector<std::int64_t> from, own;  // rows of the class token and the own patches; these among all patches
  for (std::size_t i = 0; i < place.size(); ++i) {
    const std::int64_t sample = (rows.begin() + static_cast<std::int64_t>(i)) / (c.num_patches() + 1);
    if (place[i] > 0) own.push_back(sample * c.num_patches() + place[i] - 1);
    from.push_back(place[i] > 0 ? static_cast<std::int64_t>(own.size()) : 0);
  }
  const auto on_device = [&](const std::vector<std::int64_t>& list) {
    return to_device(at::tensor(list, at::kLong), patches.device());
  };
  const at::Tensor projected = project(patches.flatten(0, 1).index_select(0, on_device(own)), p[0], p[3]);
  return at::cat({class_token, projected}).index_select(0, on_device(from));
}

at::Tensor embed(const TransformerConfig& c, std::span<const Parameter> p, const MicroBatch& batch,
                 const TensorRanks& ranks) {
  const std::int64_t samples = batch.input.size(0), side = c.image_size / c.patch_size, size = c.patch_size;
  // [samples, channels, rows, size, columns, size] -> a row for each patch, as the convolution's weights go over it
  const at::Tensor patches = batch.input.to(batch.type)
                                 .view({samples, c.num_channels, side, size, side, size})
                                 .permute({0, 2, 4, 1, 3, 5})
                                 .reshape({samples, side * side, -1});
  const RankRows rows = rows_of(batch, ranks);
  if (rows.are_split()) {
    const at::Tensor places = positions(batch, rows, at::kCPU);
    const at::Tensor tokens =
        own_patches(c, p, patches, places, rows) + look_up(p[1], to_device(places, patches.device()));
    return apply_dropout(c, 0, DropoutSite::output, tokens.to(batch.type), batch, rows);
  }
  const at::Tensor tokens = at::cat(
      {p[2].value.to(patches.scalar_type()).expand({samples, 1, c.hidden_size}), project(patches, p[0], p[3])}, 1);
  return apply_dropout(c, 0, DropoutSite::output, (tokens + p[1].value).flatten(0, 1).to(batch.type), batch, rows);
}

at::Tensor attention(const TransformerConfig& c, int layer, std::span<const Parameter> p, const at::Tensor& x,
                     const MicroBatch& batch, const TensorRanks& ranks) {
  const Parameter bias = c.has_qkv_bias ? p[5] : Parameter{};
  const NeededTokens needed(c, layer, batch, x.device(), ranks);
  const RankRows& rows = needed.rows();
  const at::Tensor joined = attend(c, layer, attention_input(c, layer_norm(c, x, p[3], p[4]), p[0], bias, needed),
                                   batch, /*is_causal=*/false);
  const at::Tensor added = project_rows(joined, p[1], p[2], rows);
  return needed.spread(needed.of(x) + apply_dropout(c, layer, DropoutSite::output, added, batch, rows));
}

at::Tensor mlp(const TransformerConfig& c, int layer, std::span<const Parameter> p, const at::Tensor& x,
               const MicroBatch& batch, const TensorRanks& ranks) {
  const NeededTokens needed(c, layer, batch, x.device(), ranks);
  const RankRows& rows = needed.rows();
  const at::Tensor from = needed.of(x);
  const at::Tensor added =
      project_rows(at::gelu(project_columns(layer_norm(c, from, p[4], p[5]), p[0], p[2], rows)), p[1], p[3], rows);
  return needed.spread(from + apply_dropout(c, layer, DropoutSite::output, added, batch, rows));
}

at::Tensor head(const TransformerConfig& c, int, std::span<const Parameter> p, const at::Tensor& x,
                const MicroBatch& batch, const TensorRanks& ranks) {
  const ClassTokens tokens(c, batch, x.device(), ranks);
  return all_of(tokens.rows(), project(layer_norm(c, tokens.of(x), p[2], p[3]), p[0], p[1]));
}

}  // namespace

const FamilyOfModels kVit{
    "vit.", embedding_parameters, attention_parameters, mlp_parameters, head_parameters, embed, attention, mlp, head};

}  // namespace frostpipe
