#include "serving/server/transformer/shared_layers.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "executor/models/folder/preprocessor_config.h"
#include "executor/models/layer_state.h"

namespace frostpipe {
namespace {

/// Returns a layer's weights from the files, in a dtype that represents all their values exactly.
at::Tensor weights_of(const ModelFolder& folder, const WeightFiles& files, int layer) {
  LayerState state = make_layer_state(parameters_of(folder.config, layer), {at::kDouble, at::kDouble}, at::kCPU,
                                      /*trains=*/false, /*num_moments=*/0);
  load_layer(folder, files, layer, /*seed=*/0, state);
  return state.weights;
}

bool have_equal_bits(const at::Tensor& one, const at::Tensor& other) {
  return one.nbytes() == other.nbytes() && std::memcmp(one.data_ptr(), other.data_ptr(), one.nbytes()) == 0;
}

[[noreturn]] void refuse(const ModelFolder& first, const ModelFolder& other, const std::string& what,
                         const std::string& of_first, const std::string& of_other) {
  throw InvalidInput(fmt::format("{}: {}", other.path.string(), what),
                     fmt::format("must be {}, as in {}, whose layers it shares", of_first, first.path.string()),
                     of_other);
}

void require_same_shape(const ModelFolder& first, const ModelFolder& other) {
  const TransformerConfig &one = first.config, &two = other.config;
  if (one.family != two.family) refuse(first, other, "family", to_string(one.family), to_string(two.family));
  if (one.task != two.task) refuse(first, other, "task", to_string(one.task), to_string(two.task));
  constexpr std::pair<const char*, std::int64_t TransformerConfig::*> kSizes[] = {
      {"hidden_size", &TransformerConfig::hidden_size},
      {"num_hidden_layers", &TransformerConfig::num_hidden_layers},
      {"num_attention_heads", &TransformerConfig::num_attention_heads},
      {"intermediate_size", &TransformerConfig::intermediate_size},
      {"vocab_size", &TransformerConfig::vocab_size},
      {"max_position_embeddings", &TransformerConfig::max_position_embeddings},
      {"type_vocab_size", &TransformerConfig::type_vocab_size},
      {"image_size", &TransformerConfig::image_size},
      {"patch_size", &TransformerConfig::patch_size},
      {"num_channels", &TransformerConfig::num_channels},
  };
  for (const auto& [name, size] : kSizes)
    if (one.*size != two.*size) refuse(first, other, name, std::to_string(one.*size), std::to_string(two.*size));
  if (one.layer_norm_eps != two.layer_norm_eps)
    refuse(first, other, "layer_norm_eps", fmt::format("{}", one.layer_norm_eps),
           fmt::format("{}", two.layer_norm_eps));
  if (one.reads_last_token() && one.padding_id != two.padding_id) {
    const auto said = [](const TransformerConfig& config) {
      return config.padding_id ? std::to_string(*config.padding_id) : "missing";
    };
    refuse(first, other, "pad_token_id", said(one), said(two));
  }
  if (one.has_qkv_bias != two.has_qkv_bias)
    refuse(first, other, "qkv_bias", fmt::format("{}", one.has_qkv_bias), fmt::format("{}", two.has_qkv_bias));
  TransformerConfig with_head_of_one = two;  // the number of labels may differ
  with_head_of_one.num_labels = one.num_labels;
  with_head_of_one.padding_id = one.padding_id;
  with_head_of_one.initializer_range = one.initializer_range;
  with_head_of_one.dropout = one.dropout;
  if (one != with_head_of_one) refuse(first, other, "config.json", "a description of the same blocks", "of others");
}

std::optional<std::string> text_in(const ModelFolder& folder, const char* name) {
  if (!std::filesystem::exists(folder.path / name)) return std::nullopt;
  return read_text_file(folder.path / name);
}

void require_same_file(const ModelFolder& first, const ModelFolder& other, const char* name) {
  const std::optional<std::string> one = text_in(first, name), two = text_in(other, name);
  if (one == two) return;
  if (!two)
    throw InvalidInput(fmt::format("{}: lacks {}, but {}, whose layers it shares, has it", other.path.string(), name,
                                   first.path.string()));
  if (!one)
    throw InvalidInput(fmt::format("{}: has {}, but {}, whose layers it shares, lacks it", other.path.string(), name,
                                   first.path.string()));
  refuse(first, other, name, "the tokenizer's file", "another one");
}

/// Throws InvalidInput unless both models convert texts or pictures alike, since all heads get the same tokens or
/// pixels.
void require_same_inputs(const ModelFolder& first, const ModelFolder& other) {
  for (const char* name : {"vocab.txt", "vocab.json", "merges.txt", "tokenizer.json", "tokenizer_config.json",
                           "special_tokens_map.json", "added_tokens.json"})
    require_same_file(first, other, name);
  if (first.config.task != Task::image_classification) return;
  const Normalisation one = read_normalisation(first.path), two = read_normalisation(other.path);
  if (one.mean != two.mean || one.deviation != two.deviation)
    refuse(first, other, "preprocessor_config.json", "of the same image_mean and image_std", "of others");
}

}  // namespace

void require_shared_layers(const std::vector<ModelFolder>& folders, int shared_layers) {
  const ModelFolder& first = folders.front();
  const std::span others = std::span(folders).subspan(1);
  for (const ModelFolder& other : others) {
    require_same_shape(first, other);
    require_same_inputs(first, other);
  }
  const WeightFiles files_of_first(first.path);
  std::vector<WeightFiles> files;
  for (const ModelFolder& other : others) files.emplace_back(other.path);
  // Compares layer by layer over all models, so that the first difference found is the one after the fewest layers.
  for (int layer = 0; layer < shared_layers; ++layer) {
    const at::Tensor weights = weights_of(first, files_of_first, layer);
    for (std::size_t i = 0; i < others.size(); ++i) {
      if (have_equal_bits(weights, weights_of(others[i], files[i], layer))) continue;
      throw InvalidInput(fmt::format(
          "{}: must have the first {} layers of {}, which the plan computes once, and shares {}",
          others[i].path.string(), shared_layers, first.path.string(),
          layer == 0 ? "none" : fmt::format("only the first {1}; plan with --heads {0},{1}", folders.size(), layer)));
    }
  }
}

}  // namespace frostpipe
