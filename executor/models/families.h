#pragma once
#include "executor/models/functions.h"

namespace frostpipe {

/// How one family does what transformer.h declares: the blocks' halves, and what stands before and after them.
struct FamilyOfModels {
  const char* prefix;  // of the base model's tensors in a file: "bert."
  std::vector<ParameterSpec> (*embedding_parameters)(const TransformerConfig&);
  std::vector<ParameterSpec> (*attention_parameters)(const TransformerConfig&, int block);
  std::vector<ParameterSpec> (*mlp_parameters)(const TransformerConfig&, int block);
  std::vector<ParameterSpec> (*head_parameters)(const TransformerConfig&);
  at::Tensor (*embed)(const TransformerConfig&, std::span<const Parameter>, const MicroBatch&, const TensorRanks&);
  at::Tensor (*attention)(const TransformerConfig&, int layer, std::span<const Parameter>, const at::Tensor& x,
                          const MicroBatch&, const TensorRanks&);
  at::Tensor (*mlp)(const TransformerConfig&, int layer, std::span<const Parameter>, const at::Tensor& x,
                    const MicroBatch&, const TensorRanks&);
  at::Tensor (*head)(const TransformerConfig&, int layer, std::span<const Parameter>, const at::Tensor& x,
                     const MicroBatch&, const TensorRanks&);
};

extern const FamilyOfModels kBert, kVit, kGpt2;
const FamilyOfModels& family_of(const TransformerConfig& config);

/// Specs that occur in every family: a projection's matrix, rows to be looked up, a bias of either a projection or a
/// norm, and a norm's scale.
ParameterSpec table_spec(std::string name, std::int64_t rows, std::int64_t size);
ParameterSpec matrix_spec(std::vector<std::string> names, std::int64_t out, std::int64_t in);
ParameterSpec bias_spec(std::vector<std::string> names, std::int64_t size);
ParameterSpec scale_spec(std::string name, std::int64_t size);

/// The same, shared by tensor ranks: by rows, that is by a projection's output, or by columns, its input.
ParameterSpec by_rows(ParameterSpec spec);
ParameterSpec by_columns(ParameterSpec spec);
/// By attention's heads: query, key and value stacked along the rows, and the columns that take what the heads give.
ParameterSpec by_rows_of_heads(const TransformerConfig& config, ParameterSpec spec);
ParameterSpec by_columns_of_heads(const TransformerConfig& config, ParameterSpec spec);

/// The MLP's, by the names that BERT and ViT have in common: `block` begins them all, `norm` is that of its norm.
std::vector<ParameterSpec> dense_mlp_specs(const TransformerConfig& config, const std::string& block,
                                           const std::string& norm);

}  // namespace frostpipe
