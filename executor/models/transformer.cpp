#include "executor/models/transformer.h"

#include <ATen/ops/tensor.h>

#include <functional>
#include <numeric>

#include "executor/device/to_device.h"
#include "executor/models/families.h"
#include "profiles/error.h"

namespace frostpipe {
namespace {

LayerKind kind_of(const TransformerConfig& config, int layer) {
  if (layer == 0) return LayerKind::embedding;
  if (layer > 2 * config.num_hidden_layers) return LayerKind::head;
  return layer % 2 == 1 ? LayerKind::attention : LayerKind::mlp;
}

int block_of(int layer) { return (layer - 1) / 2; }

}  // namespace

const char* to_string(Family family) {
  static constexpr const char* kNames[] = {"bert", "vit", "gpt2"};
  return kNames[static_cast<int>(family)];
}

const char* to_string(Task task) {
  static constexpr const char* kNames[] = {"sequence classification", "question answering", "image classification",
                                           "causal language modeling"};
  return kNames[static_cast<int>(task)];
}

std::int64_t ParameterSpec::count() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

ParameterSpec table_spec(std::string name, std::int64_t rows, std::int64_t size) {
  return {.names = {std::move(name)}, .shape = {rows, size}, .matrix = true};
}

ParameterSpec matrix_spec(std::vector<std::string> names, std::int64_t out, std::int64_t in) {
  return {.names = std::move(names), .shape = {out, in}, .matrix = true, .projects = true};
}

ParameterSpec bias_spec(std::vector<std::string> names, std::int64_t size) {
  return {.names = std::move(names), .shape = {size}, .start = ParameterSpec::Start::zero};
}

ParameterSpec scale_spec(std::string name, std::int64_t size) {
  return {.names = {std::move(name)}, .shape = {size}, .start = ParameterSpec::Start::one};
}

ParameterSpec by_rows(ParameterSpec spec) {
  spec.share = ParameterSpec::Share::rows;
  return spec;
}

ParameterSpec by_columns(ParameterSpec spec) {
  spec.share = ParameterSpec::Share::columns;
  return spec;
}

ParameterSpec by_rows_of_heads(const TransformerConfig& config, ParameterSpec spec) {
  spec = by_rows(std::move(spec));
  spec.stacked = 3;
  spec.unit = config.hidden_size / config.num_attention_heads;
  return spec;
}

ParameterSpec by_columns_of_heads(const TransformerConfig& config, ParameterSpec spec) {
  spec = by_columns(std::move(spec));
  spec.unit = config.hidden_size / config.num_attention_heads;
  return spec;
}

std::vector<ParameterSpec> dense_mlp_specs(const TransformerConfig& config, const std::string& block,
                                           const std::string& norm) {
  const std::int64_t h = config.hidden_size, f = config.intermediate_size;
  return {by_rows(matrix_spec({block + "intermediate.dense.weight"}, f, h)),
          by_columns(matrix_spec({block + "output.dense.weight"}, h, f)),
          by_rows(bias_spec({block + "intermediate.dense.bias"}, f)),
          bias_spec({block + "output.dense.bias"}, h),
          scale_spec(block + norm + ".weight", h),
          bias_spec({block + norm + ".bias"}, h)};
}

const FamilyOfModels& family_of(const TransformerConfig& config) {
  switch (config.family) {
    case Family::bert:
      return kBert;
    case Family::vit:
      return kVit;
    case Family::gpt2:
      return kGpt2;
  }
  FROSTPIPE_CHECK(false, "every family is listed above");
}

std::vector<ParameterSpec> parameters_of(const TransformerConfig& config, int layer) {
  const FamilyOfModels& family = family_of(config);
  switch (kind_of(config, layer)) {
    case LayerKind::embedding:
      return family.embedding_parameters(config);
    case LayerKind::attention:
      return family.attention_parameters(config, block_of(layer));
    case LayerKind::mlp:
      return family.mlp_parameters(config, block_of(layer));
    default:
      return family.head_parameters(config);
  }
}

std::int64_t tied_parameter_count(const TransformerConfig& config) {
  return config.ties_embeddings && config.task == Task::causal_language_modeling
             ? config.vocab_size * config.hidden_size
             : 0;
}

Model model_of(const TransformerConfig& config, std::string name) {
  Model model{.name = std::move(name),
              .hidden_size = static_cast<int>(config.hidden_size),
              .layers = {},
              .edges = {},
              .tied_parameter_count = tied_parameter_count(config),
              .vocab_size = config.family == Family::vit ? 0 : config.vocab_size,
              .is_causal = config.family == Family::gpt2 && config.task == Task::causal_language_modeling};
  const int num_layers = static_cast<int>(2 * config.num_hidden_layers + 2);
  for (int i = 0; i < num_layers; ++i) {
    Layer layer{.name = "embedding", .kind = kind_of(config, i), .block = {}, .parameter_count = 0};
    if (layer.kind == LayerKind::head) layer.name = "head";
    if (layer.kind == LayerKind::attention || layer.kind == LayerKind::mlp) {
      layer.block = block_of(i);
      layer.name =
          "block." + std::to_string(*layer.block) + (layer.kind == LayerKind::attention ? ".attention" : ".mlp");
    }
    for (const ParameterSpec& parameter : parameters_of(config, i)) {
      layer.parameter_count += parameter.count();
      if (parameter.share == ParameterSpec::Share::whole) layer.whole_parameter_count += parameter.count();
    }
    model.layers.push_back(std::move(layer));
    if (i > 0) model.edges.push_back({i - 1, i});
  }
  return model;
}

std::int64_t MicroBatch::num_tokens() const { return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}); }

std::vector<std::int64_t> MicroBatch::offsets() const {
  std::vector<std::int64_t> offsets{0};
  for (const std::int64_t length : lengths) offsets.push_back(offsets.back() + length);
  return offsets;
}

TokenRange MicroBatch::tokens_of(std::int64_t sample) const {
  return sliced ? sliced->tokens.of(sliced->lengths[sample]) : TokenRange{0, lengths[sample]};
}

MicroBatch MicroBatch::slice(const TokenRange& tokens, KeyValuesOfLayers& key_values) const {
  MicroBatch slice = *this;
  slice.sliced = {lengths, tokens, &key_values};
  slice.begins = at::Tensor();
  for (std::int64_t& length : slice.lengths) length = tokens.of(length).count();
  const at::Tensor rows = rows_of_slice(lengths, tokens);
  if (input.defined()) slice.input = input.index_select(0, to_device(rows, input.device()));
  if (token_types.defined()) slice.token_types = token_types.index_select(0, to_device(rows, token_types.device()));
  return slice;
}

MicroBatch MicroBatch::narrow(std::int64_t begin, std::int64_t count) const {
  const std::vector<std::int64_t> offset = offsets();
  const std::int64_t first = offset[begin], tokens = offset[begin + count] - first;
  const auto of_tokens = [&](const at::Tensor& all) { return all.defined() ? all.narrow(0, first, tokens) : all; };
  const auto of_samples = [&](const at::Tensor& all) { return all.defined() ? all.narrow(0, begin, count) : all; };
  const auto of = [&](const at::Tensor& all) { return is_by_token(all) ? of_tokens(all) : of_samples(all); };
  return {{lengths.begin() + begin, lengths.begin() + begin + count},
          of(input),
          of_tokens(token_types),
          of(labels),
          of_samples(dropout_keys),
          type};
}

MicroBatch MicroBatch::select(std::span<const std::int64_t> samples) const {
  const at::Tensor rows = rows_of_samples(lengths, samples);
  const at::Tensor numbers = at::tensor(at::ArrayRef<std::int64_t>(samples.data(), samples.size()), at::kLong);
  const auto at_index = [](const at::Tensor& all, const at::Tensor& index) {
    return all.defined() ? all.index_select(0, to_device(index, all.device())) : all;
  };
  const auto of = [&](const at::Tensor& all) { return at_index(all, is_by_token(all) ? rows : numbers); };
  const auto lengths_of = [&](std::span<const std::int64_t> all) {
    std::vector<std::int64_t> selected;
    for (const std::int64_t sample : samples) selected.push_back(all[sample]);
    return selected;
  };
  MicroBatch selected{
      lengths_of(lengths), of(input), at_index(token_types, rows), {}, at_index(dropout_keys, numbers), type};
  if (sliced)
    selected.sliced = {lengths_of(sliced->lengths), sliced->tokens, sliced->key_values};
  else
    selected.labels = of(labels);
  return selected;
}

MicroBatch MicroBatch::to(const at::Device& device) const {
  const auto of = [&](const at::Tensor& all) { return all.defined() ? to_device(all, device) : all; };
  return MicroBatch{lengths, of(input), of(token_types), of(labels), dropout_keys, type}.with_begins(device);
}

MicroBatch MicroBatch::with_begins(const at::Device& device) const {
  MicroBatch batch = *this;
  if (!device.is_cpu()) batch.begins = to_device(at::tensor(offsets(), at::kInt), device);
  return batch;
}

void MicroBatch::take_values(const MicroBatch& host) {
  const auto take = [](const at::Tensor& own, const at::Tensor& other) {
    if (own.defined()) own.copy_(other.pin_memory(), /*non_blocking=*/true);
  };
  take(input, host.input);
  take(token_types, host.token_types);
  take(labels, host.labels);
  dropout_keys = host.dropout_keys;
}

at::Tensor rows_of_samples(std::span<const std::int64_t> lengths, std::span<const std::int64_t> samples) {
  std::vector<std::int64_t> offsets{0};
  for (const std::int64_t length : lengths) offsets.push_back(offsets.back() + length);
  std::vector<std::int64_t> rows;
  for (const std::int64_t sample : samples) {
    for (std::int64_t row = offsets[sample]; row < offsets[sample + 1]; ++row) rows.push_back(row);
  }
  return at::tensor(rows, at::kLong);
}

at::Tensor rows_of_slice(std::span<const std::int64_t> lengths, const TokenRange& tokens) {
  std::vector<std::int64_t> rows;
  std::int64_t offset = 0;
  for (const std::int64_t length : lengths) {
    const TokenRange of_sample = tokens.of(length);
    for (std::int64_t token = of_sample.begin; token < of_sample.end; ++token) rows.push_back(offset + token);
    offset += length;
  }
  return at::tensor(rows, at::kLong);
}

MicroBatch MicroBatch::without_dropout() const {
  MicroBatch batch = *this;
  batch.dropout_keys = at::Tensor();
  return batch;
}

at::Tensor forward_layer(const TransformerConfig& config, int layer, std::span<const Parameter> parameters,
                         const at::Tensor& input, const MicroBatch& batch, const TensorRanks& tensor_ranks) {
  const FamilyOfModels& family = family_of(config);
  switch (kind_of(config, layer)) {
    case LayerKind::embedding:
      return family.embed(config, parameters, batch, tensor_ranks);
    case LayerKind::attention:
      return family.attention(config, layer, parameters, input, batch, tensor_ranks);
    case LayerKind::mlp:
      return family.mlp(config, layer, parameters, input, batch, tensor_ranks);
    default:
      return family.head(config, layer, parameters, input, batch, tensor_ranks);
  }
}

std::int64_t image_tokens(const TransformerConfig& config) { return config.num_patches() + 1; }

}  // namespace frostpipe
