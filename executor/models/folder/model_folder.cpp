#include "executor/models/folder/model_folder.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <random>

#include "base/error.h"
#include "base/files.h"
#include "executor/device/memory_meter.h"
#include "executor/models/folder/mapped_tensor.h"
#include "executor/models/folder/model_config.h"
#include "executor/models/folder/preprocessor_config.h"
#include "executor/models/shards.h"
#include "profiles/model_source.h"
#include "profiles/transformer/families.h"

namespace frostpipe {
namespace {

/// Returns the name in files before 2019 (bert-base-uncased) for "LayerNorm.weight" and "LayerNorm.bias": gamma and
/// beta.
std::string old_name_of(const std::string& name) {
  for (const auto& [ending, old] : {std::pair<std::string, std::string>{"LayerNorm.weight", "LayerNorm.gamma"},
                                    {"LayerNorm.bias", "LayerNorm.beta"}})
    if (name.ends_with(ending)) return name.substr(0, name.size() - ending.size()) + old;
  return name;
}

/// Returns a tensor's name in the files: a base model has no prefix, and some heads have another one. Returns "" if the
/// tensor is missing.
std::string name_in(const WeightFiles& files, const TransformerConfig& config, const std::string& name) {
  const std::string base = row_of(config.family).prefix;
  std::string bare = name;
  for (const std::string& prefix : {base, std::string(head_of(config).prefix ? head_of(config).prefix : "")})
    if (!prefix.empty() && bare.starts_with(prefix)) bare = bare.substr(prefix.size());
  for (const std::string& one : {name, base + bare, bare, old_name_of(name), old_name_of(bare)})
    if (files.find(one)) return one;
  return "";
}

/// True for the head's layer; its tensors may be missing.
bool is_head(const TransformerConfig& config, int layer) { return layer == num_layers(config) - 1; }

/// True for parameters with a row for each label, or for begin and end of an answer.
bool is_classifier(const ParameterSpec& spec) { return spec.role == Role::classes || spec.role == Role::classes_bias; }

/// The final norm is in the head's layer but belongs to the base model; a pooler exists only with some heads.
bool may_start_at_random(const TransformerConfig& config, int layer, const ParameterSpec& spec) {
  return is_head(config, layer) && spec.role != Role::norm && spec.role != Role::norm_bias;
}

/// True if the head's matrix is the input embedding's.
bool is_tied(const TransformerConfig& config, const ParameterSpec& spec) {
  return spec.role == Role::classes && tied_parameter_count(config) > 0;
}

/// Returns whether the files have the spec's tensors. A head for other labels, or of another shape, counts as missing;
/// any other tensor of another shape is an error.
bool is_there(const ModelFolder& folder, const WeightFiles& files, int layer, const ParameterSpec& spec) {
  if (!folder.other_use.empty() && is_classifier(spec)) return false;
  const std::vector<std::int64_t> shape = stored_shape(spec);
  for (const std::string& name : spec.names) {
    const std::string stored = name_in(files, folder.config, name);
    const StoredTensor* const found = files.find(stored);
    if ((!found || found->shape != shape) && may_start_at_random(folder.config, layer, spec)) return false;
    const std::string wanted = stored.empty() ? name : stored;
    scalar_type(files.tensor(wanted, shape).dtype, files.place_of(wanted) + ": dtype");
  }
  return true;
}

/// Returns a random number uniform in [0, 1), the same on every platform.
double uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

/// Returns a standard normal random number (Box and Muller 1958), the same on every platform except for the last bits
/// of the logarithm.
double normal(std::mt19937_64& random) {
  const double radius = std::sqrt(-2 * std::log(1 - uniform(random)));
  return radius * std::cos(2 * std::numbers::pi * uniform(random));
}

void fill_at_start(const ParameterSpec& spec, double deviation, std::mt19937_64& random, at::Tensor parameter) {
  if (spec.start != ParameterSpec::Start::normal) {
    parameter.fill_(spec.start == ParameterSpec::Start::one ? 1.0 : 0.0);
    return;
  }
  const UncountedMemory staging;
  at::Tensor values = at::empty({parameter.numel()}, at::kDouble);
  for (std::int64_t i = 0; i < values.numel(); ++i)
    values.data_ptr<double>()[i] = deviation * spec.deviation_factor * normal(random);
  parameter.copy_(values.view(parameter.sizes()));
}

void copy_tokenizer(const std::filesystem::path& source, const std::filesystem::path& target) {
  for (const char* name :
       {"vocab.txt", "vocab.json", "merges.txt", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
        "added_tokens.json", "chat_template.jinja", "generation_config.json"}) {
    if (std::filesystem::exists(source / name)) write_file_atomically(target / name, read_text_file(source / name));
  }
}

bool are_numbers(const std::vector<std::string>& label_names) {
  for (std::size_t i = 0; i < label_names.size(); ++i)
    if (label_names[i] != std::to_string(i)) return false;
  return true;
}

/// Returns the use of the folder's head if it is another one than that for which the folder is opened, else "". A head
/// whose tensors have other names counts as missing.
std::string other_use_of(const ModelFolder& folder, Task task, const std::vector<std::string>& label_names,
                         ProblemType problem_type) {
  const TransformerConfig& config = folder.config;
  if (config.task != task)
    return std::string_view(head_of(config).classes) == find_head(config.family, task)->classes ? to_string(config.task)
                                                                                                : "";
  if (config.tells_class() && config.problem_type != problem_type) return to_string(config.problem_type);
  if (problem_type == ProblemType::regression) return "";  // a number has no name
  return are_other_labels(folder.label_names, label_names) ? "other labels" : "";
}

}  // namespace

bool are_unnamed(const std::vector<std::string>& label_names) {
  for (std::size_t i = 0; i < label_names.size(); ++i)
    if (label_names[i] != fmt::format("LABEL_{}", i)) return false;
  return true;
}

bool are_other_labels(const std::vector<std::string>& of_folder, const std::vector<std::string>& of_data) {
  return !of_data.empty() && of_folder != of_data && !(are_unnamed(of_folder) && are_numbers(of_data));
}

std::string model_name(const std::filesystem::path& path, const std::string& config) {
  std::string given = name_or_path(config);
  given.resize(given.find_last_not_of('/') + 1);
  return given.empty() ? std::filesystem::weakly_canonical(path).filename().string()
                       : given.substr(given.rfind('/') + 1);
}

ModelFolder open_model_folder(const std::filesystem::path& path) {
  require_model_folder(path);
  const std::string file = (path / "config.json").string(), text = read_text_file(file);
  const TransformerConfig config = config_from_json(text, file);
  return {.path = path,
          .config = config,
          .label_names = label_names_from_json(text, file),
          .other_use = {},
          .name = model_name(path, text)};
}

void set_task(ModelFolder& folder, Task task, const std::vector<std::string>& label_names, ProblemType problem_type) {
  if (!find_head(folder.config.family, task)) {
    throw InvalidInput((folder.path / "config.json").string() + ": model_type",
                       fmt::format("must be of a model with a head for {}, which the data asks for", to_string(task)),
                       to_string(folder.config.family));
  }
  folder.other_use = other_use_of(folder, task, label_names, problem_type);
  folder.config.task = task;
  folder.config.problem_type = problem_type;
  folder.label_names = label_names;
  if (!label_names.empty()) folder.config.num_labels = static_cast<std::int64_t>(label_names.size());
}

std::vector<std::string> check_weights(const ModelFolder& folder, const WeightFiles& files) {
  if (files.empty()) return {"the whole model"};
  std::vector<std::string> missing;
  for (int layer = 0; layer < num_layers(folder.config); ++layer) {
    for (const ParameterSpec& spec : parameters_of(folder.config, layer)) {
      const bool is_found = is_tied(folder.config, spec) || is_there(folder, files, layer, spec);
      if (is_found) continue;
      for (const std::string& name : spec.names)
        missing.push_back(name_in(files, folder.config, name).empty()
                              ? name
                              : fmt::format("{} (there, but for {})", name,
                                            folder.other_use.empty() ? "other labels" : folder.other_use));
    }
  }
  return missing;
}

void load_layer(const ModelFolder& folder, const WeightFiles& files, int layer, std::uint64_t seed, LayerState& state) {
  const at::NoGradGuard no_grad;
  if (state.slice != TensorSlice{}) {  // a part of the same values
    const at::ScalarType kept = state.weights.scalar_type();
    const UncountedMemory host;
    LayerState whole = make_layer_state(state.whole, {kept, kept}, at::kCPU, /*trains=*/false, /*num_moments=*/0);
    load_layer(folder, files, layer, seed, whole);
    state.weights.copy_(taken(state.whole, whole.weights, {}, {.slice = state.slice}));
    return;
  }
  const std::vector<ParameterSpec>& specs = state.whole;
  const std::vector<at::Tensor> parameters = kept_parameters(state);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    ParameterSpec spec = specs[i];
    int drawn_as = layer;
    if (is_tied(folder.config, spec)) {  // even if the files have a matrix of its own, as in transformers
      spec.names = parameters_of(folder.config, 0).front().names;
      drawn_as = 0;
    }
    if (files.empty() || !is_there(folder, files, layer, spec)) {
      std::mt19937_64 random((seed * 1000003 + static_cast<std::uint64_t>(drawn_as)) * 1000003 + i);
      fill_at_start(spec, folder.config.initializer_range, random, parameters[i]);
      continue;
    }
    std::int64_t row = 0;
    const std::vector<std::int64_t> shape = stored_shape(spec);
    for (const std::string& name : spec.names) {
      const std::string stored = name_in(files, folder.config, name);
      at::Tensor values = mapped_tensor(files, stored, shape);
      if (spec.transposed) values = values.t();
      if (spec.stored_heads > 0) values = values.view({spec.stored_heads, 3, -1}).transpose(0, 1);
      if (spec.stored_rows > 0) values = values.narrow(0, spec.stored_begin, spec.shape[0]);
      const std::int64_t rows = spec.shape[0] / static_cast<std::int64_t>(spec.names.size());
      const at::Tensor into = parameters[i].narrow(0, row, rows);
      into.copy_(values.reshape(into.sizes()));
      row += rows;
    }
  }
}

void write_model_folder(const ModelFolder& source, bool embeddings_are_tied,
                        const std::function<at::Tensor(int layer)>& weights_of, const std::filesystem::path& target,
                        const SavedWeights& saved) {
  write_weights(source.config, embeddings_are_tied, weights_of, target, saved);
  if (source.config.reads_pictures)
    write_file_atomically(target / "preprocessor_config.json",
                          preprocessor_config(source.path, source.config.image_size));
  write_file_atomically(target / "config.json",
                        config_with_head(read_text_file(source.path / "config.json"), source.config,
                                         embeddings_are_tied, source.label_names, saved.dtype));
  copy_tokenizer(source.path, target);
}

}  // namespace frostpipe
