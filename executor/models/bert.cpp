#include <ATen/TensorOperators.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/tanh.h>

#include "executor/models/attention.h"
#include "executor/models/collectives/collectives.h"
#include "executor/models/families.h"

// Devlin et al. 2019: norms stand after each half of a block.

namespace frostpipe {
namespace {

std::string block_name(int block) { return "bert.encoder.layer." + std::to_string(block) + "."; }

std::vector<ParameterSpec> embedding_parameters(const TransformerConfig& c) {
  const std::string e = "bert.embeddings.";
  return {by_rows(table_spec(e + "word_embeddings.weight", c.vocab_size, c.hidden_size)),
          table_spec(e + "position_embeddings.weight", c.max_position_embeddings, c.hidden_size),
          table_spec(e + "token_type_embeddings.weight", c.type_vocab_size, c.hidden_size),
          scale_spec(e + "LayerNorm.weight", c.hidden_size), bias_spec({e + "LayerNorm.bias"}, c.hidden_size)};
}

std::vector<ParameterSpec> attention_parameters(const TransformerConfig& c, int block) {
  const std::int64_t h = c.hidden_size;
  const std::string a = block_name(block) + "attention.";
  return {by_rows_of_heads(
              c, matrix_spec({a + "self.query.weight", a + "self.key.weight", a + "self.value.weight"}, 3 * h, h)),
          by_columns_of_heads(c, matrix_spec({a + "output.dense.weight"}, h, h)),
          by_rows_of_heads(c, bias_spec({a + "self.query.bias", a + "self.key.bias", a + "self.value.bias"}, 3 * h)),
          bias_spec({a + "output.dense.bias"}, h),
          scale_spec(a + "output.LayerNorm.weight", h),
          bias_spec({a + "output.LayerNorm.bias"}, h)};
}

std::vector<ParameterSpec> mlp_parameters(const TransformerConfig& c, int block) {
  return dense_mlp_specs(c, block_name(block), "output.LayerNorm");
}

std::vector<ParameterSpec> head_parameters(const TransformerConfig& c) {
  const std::int64_t h = c.hidden_size;
  if (c.task == Task::question_answering)
    return {matrix_spec({"qa_outputs.weight"}, 2, h), bias_spec({"qa_outputs.bias"}, 2)};
  return {matrix_spec({"bert.pooler.dense.weight"}, h, h), matrix_spec({"classifier.weight"}, c.num_labels, h),
          bias_spec({"bert.pooler.dense.bias"}, h), bias_spec({"classifier.bias"}, c.num_labels)};
}

at::Tensor embed(const TransformerConfig& c, std::span<const Parameter> p, const MicroBatch& batch,
                 const TensorRanks& ranks) {
  const RankRows rows = rows_of(batch, ranks);
  const at::Tensor types =
      batch.token_types.defined() ? look_up(p[2], rows.own(batch.token_types)) : p[2].value.select(0, 0);
  const at::Tensor words = look_up_shared(p[0], c.vocab_size, batch.input, rows);
  const at::Tensor sum = words + look_up(p[1], positions(batch, rows, batch.input.device())) + types;
  return apply_dropout(c, 0, DropoutSite::output, layer_norm(c, sum, p[3], p[4]).to(batch.type), batch, rows);
}

at::Tensor attention(const TransformerConfig& c, int layer, std::span<const Parameter> p, const at::Tensor& x,
                     const MicroBatch& batch, const TensorRanks& ranks) {
  const NeededTokens needed(c, layer, batch, x.device(), ranks);
  const at::Tensor joined = attend(c, layer, attention_input(c, x, p[0], p[2], needed), batch, /*is_causal=*/false);
  const at::Tensor added = apply_dropout(c, layer, DropoutSite::output, project_rows(joined, p[1], p[3], needed.rows()),
                                         batch, needed.rows());
  return needed.spread(layer_norm(c, added + needed.of(x), p[4], p[5]));
}

at::Tensor mlp(const TransformerConfig& c, int layer, std::span<const Parameter> p, const at::Tensor& x,
               const MicroBatch& batch, const TensorRanks& ranks) {
  const NeededTokens needed(c, layer, batch, x.device(), ranks);
  const RankRows& rows = needed.rows();
  const at::Tensor from = needed.of(x),
                   added = project_rows(at::gelu(project_columns(from, p[0], p[2], rows)), p[1], p[3], rows);
  return needed.spread(
      layer_norm(c, apply_dropout(c, layer, DropoutSite::output, added, batch, rows) + from, p[4], p[5]));
}

at::Tensor head(const TransformerConfig& c, int layer, std::span<const Parameter> p, const at::Tensor& x,
                const MicroBatch& batch, const TensorRanks& ranks) {
  if (c.task == Task::question_answering) return all_of(rows_of(batch, ranks), project(x, p[0], p[1]));
  const ClassTokens tokens(c, batch, x.device(), ranks);
  const at::Tensor pooled = at::tanh(project(tokens.of(x), p[0], p[2]));
  const at::Tensor dropped = apply_dropout(c, layer, DropoutSite::output, pooled, batch, tokens.rows());
  return all_of(tokens.rows(), project(dropped, p[1], p[3]));
}

}  // namespace

const FamilyOfModels kBert{
    "bert.", embedding_parameters, attention_parameters, mlp_parameters, head_parameters, embed, attention, mlp, head};

}  // namespace frostpipe
