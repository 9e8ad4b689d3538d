#include "profiles/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/files.h"
#include "profiles/model_json.h"

namespace frostpipe {

namespace {

constexpr std::array kKinds{LayerKind::embedding, LayerKind::attention, LayerKind::mlp,
                            LayerKind::head,      LayerKind::layer,     LayerKind::block};

/// Returns the kind of layers that are blocks of their own, none if a block has two layers.
std::optional<LayerKind> kind_of_whole_blocks(const Model& model) {
  const auto found = std::ranges::find_if(
      model.layers, [](LayerKind kind) { return kind == LayerKind::layer || kind == LayerKind::block; }, &Layer::kind);
  return found == model.layers.end() ? std::nullopt : std::optional(found->kind);
}

/// Returns the required kind of layer `index` in a chain of `num_layers` layers.
LayerKind expected_kind(std::size_t index, std::size_t num_layers, std::optional<LayerKind> whole_blocks) {
  if (index == 0) return LayerKind::embedding;
  if (index + 1 == num_layers) return LayerKind::head;
  if (whole_blocks) return *whole_blocks;
  return index % 2 == 1 ? LayerKind::attention : LayerKind::mlp;
}

std::optional<int> expected_block(std::size_t index, std::size_t num_layers, std::optional<LayerKind> whole_blocks) {
  if (index == 0 || index + 1 == num_layers) return std::nullopt;
  return static_cast<int>((index - 1) / (whole_blocks ? 1 : 2));
}

std::string block_text(std::optional<int> block) { return block ? std::to_string(*block) : "none"; }

}  // namespace

std::string_view to_string(LayerKind kind) {
  switch (kind) {
    case LayerKind::embedding:
      return "embedding";
    case LayerKind::attention:
      return "attention";
    case LayerKind::mlp:
      return "mlp";
    case LayerKind::head:
      return "head";
    case LayerKind::layer:
      return "layer";
    case LayerKind::block:
      return "block";
  }
  FROSTPIPE_CHECK(false, "all layer kinds are listed");
}

void parse_text(std::string_view text, const std::string& place, LayerKind& kind) {
  const auto found = std::find_if(kKinds.begin(), kKinds.end(), [&](LayerKind k) { return to_string(k) == text; });
  if (found == kKinds.end())
    throw InvalidInput(place, "must be embedding, attention, mlp, head, layer or block", fmt::format("\"{}\"", text));
  kind = *found;
}

int num_blocks(const Model& model) {
  int blocks = 0;
  for (const auto& layer : model.layers) blocks = std::max(blocks, layer.block.value_or(-1) + 1);
  return blocks;
}

int first_trainable_layer(const Model& model, int frozen_blocks) {
  FROSTPIPE_CHECK(frozen_blocks >= 0 && frozen_blocks <= num_blocks(model), "callers count blocks of this model");
  if (frozen_blocks == 0) return 0;
  int first = 0;
  for (int i = 0; i < static_cast<int>(model.layers.size()); ++i)
    if (model.layers[i].block && *model.layers[i].block < frozen_blocks) first = i + 1;
  return first;
}

int frozen_blocks(const Model& model, int first_trainable_layer) {
  int whole = num_blocks(model);
  for (int i = std::max(0, first_trainable_layer); i < static_cast<int>(model.layers.size()); ++i)
    if (model.layers[i].block) whole = std::min(whole, *model.layers[i].block);
  return whole;
}

std::int64_t touched_parameter_count(const Model& model, int layer, std::int64_t tokens) {
  const std::int64_t count = model.layers.at(layer).parameter_count -
                             (model.expert_parallel_size > 1 ? model.layers.at(layer).expert_parameter_count : 0);
  return layer > 0 ? count : count - std::max<std::int64_t>(0, model.vocab_size - tokens) * model.hidden_size;
}

std::int64_t held_parameter_count(const Model& model, int layer) {
  const Layer& described = model.layers.at(layer);
  return of_tensor_rank(described.parameter_count, described.parameter_count - described.expert_parameter_count,
                        model.expert_parallel_size);
}

Nanoseconds update_of_tensor_rank(const Layer& layer, Nanoseconds update_ns, int tensor_parallel_size) {
  const double whole = layer.parameter_count == 0 ? 0
                                                  : static_cast<double>(layer.whole_parameter_count) /
                                                        static_cast<double>(layer.parameter_count);
  return of_tensor_rank(update_ns, static_cast<Nanoseconds>(whole * static_cast<double>(update_ns)),
                        tensor_parallel_size);
}

namespace {

void require_experts(const Model& model, std::string_view source) {
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const Layer& layer = model.layers[i];
    const std::int64_t most = layer.parameter_count - layer.whole_parameter_count;
    if (layer.expert_parameter_count < 0 || layer.expert_parameter_count > most)
      throw InvalidInput(fmt::format("{}: layers[{}].expert_parameter_count", source, i),
                         fmt::format("must be from 0 to {}, the parameters that tensor ranks split", most),
                         std::to_string(layer.expert_parameter_count));
  }
  if (model.expert_parallel_size < 1)
    throw InvalidInput(fmt::format("{}: expert_parallel_size", source), "must be >= 1",
                       std::to_string(model.expert_parallel_size));
}

}  // namespace

void validate(const Model& model, std::string_view source) {
  const std::size_t n = model.layers.size();
  if (n < 2)
    throw InvalidInput(fmt::format("{}: layers", source), "must hold at least an embedding and a head",
                       fmt::format("{} layers", n));
  const std::optional<LayerKind> whole_blocks = kind_of_whole_blocks(model);
  if (n % 2 != 0 && !whole_blocks)
    throw InvalidInput(fmt::format("{}: layers", source),
                       "must be an embedding, pairs of attention and mlp, and a head", fmt::format("{} layers", n));
  for (std::size_t i = 0; i < n; ++i) {
    const auto& layer = model.layers[i];
    const auto place = fmt::format("{}: layers[{}]", source, i);
    if (layer.kind != expected_kind(i, n, whole_blocks))
      throw InvalidInput(place + ".kind", fmt::format("must be {} here", to_string(expected_kind(i, n, whole_blocks))),
                         to_string(layer.kind));
    if (layer.block != expected_block(i, n, whole_blocks))
      throw InvalidInput(place + ".block",
                         fmt::format("must be {} here", block_text(expected_block(i, n, whole_blocks))),
                         block_text(layer.block));
    if (layer.parameter_count < 0)
      throw InvalidInput(place + ".parameter_count", "must be >= 0", std::to_string(layer.parameter_count));
    if (layer.whole_parameter_count < 0 || layer.whole_parameter_count > layer.parameter_count)
      throw InvalidInput(place + ".whole_parameter_count",
                         fmt::format("must be from 0 to {}, the layer's parameter_count", layer.parameter_count),
                         std::to_string(layer.whole_parameter_count));
  }
  require_experts(model, source);
  const std::int64_t max_tied = std::min(model.layers.front().parameter_count, model.layers.back().parameter_count);
  if (model.tied_parameter_count < 0 || model.tied_parameter_count > max_tied)
    throw InvalidInput(fmt::format("{}: tied_parameter_count", source),
                       fmt::format("must be from 0 to {}, the smaller parameter_count of embedding and head", max_tied),
                       std::to_string(model.tied_parameter_count));
  if (model.hidden_size < 1)
    throw InvalidInput(fmt::format("{}: hidden_size", source), "must be >= 1", std::to_string(model.hidden_size));
  const std::int64_t max_rows = model.layers.front().parameter_count / model.hidden_size;
  if (model.vocab_size < 0 || model.vocab_size > max_rows)
    throw InvalidInput(fmt::format("{}: vocab_size", source),
                       fmt::format("must be from 0 to {}, the embedding's parameters / hidden_size", max_rows),
                       std::to_string(model.vocab_size));
  if (model.edges.size() != n - 1)
    throw InvalidInput(fmt::format("{}: edges", source), fmt::format("must be the {} edges of a chain", n - 1),
                       fmt::format("{} edges", model.edges.size()));
  for (int i = 0; i + 1 < static_cast<int>(n); ++i)
    if (model.edges[i] != Edge{i, i + 1})
      throw InvalidInput(fmt::format("{}: edges[{}]", source, i), fmt::format("must lead from {} to {}", i, i + 1),
                         fmt::format("{} to {}", model.edges[i].from, model.edges[i].to));
}

std::string fingerprint(const Model& model) {
  std::string structure = fmt::format("hidden {}\n", model.hidden_size);
  for (const auto& layer : model.layers) {
    // The head's size is left out: it follows the number of labels, and a plan holds for any number of them.
    const std::int64_t count = layer.kind == LayerKind::head ? 0 : layer.parameter_count;
    structure += fmt::format("{} {} {} {}\n", layer.name, to_string(layer.kind), block_text(layer.block), count);
  }
  for (const auto& edge : model.edges) structure += fmt::format("{} -> {}\n", edge.from, edge.to);
  return fingerprint(std::string_view(structure));
}

}  // namespace frostpipe
