#include <ATen/TensorOperators.h>
#include <ATen/ops/gelu.h>

#include <cmath>

#include "executor/models/attention.h"
#include "executor/models/collectives/collectives.h"
#include "executor/models/families.h"

// Radford et al. 2019: a token sees itself and those before it; norms stand before each half of a block. Files hold
// matrices as [in, out].

namespace frostpipe {
namespace {

std::string block_name(int block) { return "transformer.h." + std::to_string(block) + "."; }

ParameterSpec transposed_spec(std::string name, std::int64_t out, std::int64_t in) {
  ParameterSpec spec = matrix_spec({std::move(name)}, out, in);
  spec.transposed = true;
  return spec;
}

/// Of a matrix whose output is added to what the block was given: smaller, as there are two in every block.
ParameterSpec adding_spec(const TransformerConfig& c, std::string name, std::int64_t out, std::int64_t in) {
  ParameterSpec spec = transposed_spec(std::move(name), out, in);
  spec.deviation_factor = 1 / std::sqrt(2.0 * static_cast<double>(c.num_hidden_layers));
  return spec;
}

std::vector<ParameterSpec> embedding_parameters(const TransformerConfig& c) {
  return {by_rows(table_spec("transformer.wte.weight", c.vocab_size, c.hidden_size)),
          table_spec("transformer.wpe.weight", c.max_position_embeddings, c.hidden_size)};
}

std::vector<ParameterSpec> attention_parameters(const TransformerConfig& c, int block) {
  const std::int64_t h = c.hidden_size;
  const std::string b = block_name(block), a = b + "attn.";
  return {by_rows_of_heads(c, transposed_spec(a + "c_attn.weight", 3 * h, h)),
          by_columns_of_heads(c, adding_spec(c, a + "c_proj.weight", h, h)),
          by_rows_of_heads(c, bias_spec({a + "c_attn.bias"}, 3 * h)),
          bias_spec({a + "c_proj.bias"}, h),
          scale_spec(b + "ln_1.weight", h),
          bias_spec({b + "ln_1.bias"}, h)};
}

std::vector<ParameterSpec> mlp_parameters(const TransformerConfig& c, int block) {
  const std::int64_t h = c.hidden_size, f = c.intermediate_size;
  const std::string b = block_name(block), m = b + "mlp.";
  return {by_rows(transposed_spec(m + "c_fc.weight", f, h)),
          by_columns(adding_spec(c, m + "c_proj.weight", h, f)),
          by_rows(bias_spec({m + "c_fc.bias"}, f)),
          bias_spec({m + "c_proj.bias"}, h),
          scale_spec(b + "ln_2.weight", h),
          bias_spec({b + "ln_2.bias"}, h)};
}

std::vector<ParameterSpec> head_parameters(const TransformerConfig& c) {
  const std::int64_t h = c.hidden_size;
  const ParameterSpec scale = scale_spec("transformer.ln_f.weight", h), shift = bias_spec({"transformer.ln_f.bias"}, h);
  switch (c.task) {
    case Task::causal_language_modeling:
      return {by_rows(matrix_spec({"lm_head.weight"}, c.vocab_size, h)), scale, shift};
    case Task::question_answering:
      return {matrix_spec({"qa_outputs.weight"}, 2, h), scale, shift, bias_spec({"qa_outputs.bias"}, 2)};
    default:
      return {matrix_spec({"score.weight"}, c.num_labels, h), scale, shift};
  }
}

at::Tensor embed(const TransformerConfig& c, std::span<const Parameter> p, const MicroBatch& batch,
                 const TensorRanks& ranks) {
  const RankRows rows = rows_of(batch, ranks);
  const at::Tensor sum = look_up_shared(p[0], c.vocab_size, batch.input, rows) +
                         look_up(p[1], positions(batch, rows, batch.input.device()));
  return apply_dropout(c, 0, DropoutSite::output, sum.to(batch.type), batch, rows);
}

at::Tensor attention(const TransformerConfig& c, int layer, std::span<const Parameter> p, const at::Tensor& x,
                     const MicroBatch& batch, const TensorRanks& ranks) {
  const NeededTokens needed(c, layer, batch, x.device(), ranks);
  const RankRows& rows = needed.rows();
  const at::Tensor joined =
      attend(c, layer, attention_input(c, layer_norm(c, x, p[4], p[5]), p[0], p[2], needed), batch, /*is_causal=*/true);
  const at::Tensor added = project_rows(joined, p[1], p[3], rows);
  return needed.spread(needed.of(x) + apply_dropout(c, layer, DropoutSite::output, added, batch, rows));
}

at::Tensor mlp(const TransformerConfig& c, int layer, std::span<const Parameter> p, const at::Tensor& x,
               const MicroBatch& batch, const TensorRanks& ranks) {
  const NeededTokens needed(c, layer, batch, x.device(), ranks);
  const RankRows& rows = needed.rows();
  const at::Tensor from = needed.of(x);
  const at::Tensor added = project_rows(
      at::gelu(project_columns(layer_norm(c, from, p[4], p[5]), p[0], p[2], rows), "tanh"), p[1], p[3], rows);
  return needed.spread(from + apply_dropout(c, layer, DropoutSite::output, added, batch, rows));
}

at::Tensor head(const TransformerConfig& c, int, std::span<const Parameter> p, const at::Tensor& x,
                const MicroBatch& batch, const TensorRanks& ranks) {
  const RankRows rows = rows_of(batch, ranks);
  switch (c.task) {
    case Task::causal_language_modeling:
      return project_columns(layer_norm(c, x, p[1], p[2]), p[0], Parameter{}, rows);
    case Task::question_answering:
      return all_of(rows, project(layer_norm(c, x, p[1], p[2]), p[0], p[3]));
    default:
      break;
  }
  const ClassTokens tokens(c, batch, x.device(), ranks);
  return all_of(tokens.rows(), project(layer_norm(c, tokens.of(x), p[1], p[2]), p[0], Parameter{}));
}

}  // namespace

const FamilyOfModels kGpt2{"transformer.",
                           embedding_parameters,
                           attention_parameters,
                           mlp_parameters,
                           head_parameters,
                           embed,
                           attention,
                           mlp,
                           head};

}  // namespace frostpipe
