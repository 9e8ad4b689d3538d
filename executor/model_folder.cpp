#include "executor/model_folder.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>

#include "executor/communicator.h"
#include "executor/memory_meter.h"
#include "profiles/error.h"
#include "profiles/files.h"

namespace frostpipe {
namespace {

using Json = nlohmann::ordered_json;

double epsilon_of(const Json& config, const std::string& file) {
  const Json value = config.value("layer_norm_eps", Json(1e-12));
  if (!value.is_number() || !(value.get<double>() > 0)) throw InvalidInput(file + ": layer_norm_eps", "must be a number > 0", value.dump());
  return value.get<double>();
}

std::int64_t positive(const Json& config, const std::string& file, const char* key) {
  if (!config.contains(key)) throw InvalidInput(file + ": " + key, "must be given", "missing");
  const Json& value = config.at(key);
  if (!value.is_number_integer() || value.get<std::int64_t>() <= 0) throw InvalidInput(file + ": " + key, "must be a whole number > 0", value.dump());
  return value.get<std::int64_t>();
}

void require(const Json& config, const std::string& file, const char* key, const std::string& expected) {
  const Json value = config.value(key, Json(expected));
  if (value != Json(expected)) throw InvalidInput(file + ": " + key, "must be \"" + expected + "\" (only BERT-type encoders are supported)", value.dump());
}

at::ScalarType scalar_type(const std::string& dtype, const std::string& place) {
  if (dtype == "F32") return at::kFloat;
  if (dtype == "F64") return at::kDouble;
  if (dtype == "BF16") return at::kBFloat16;
  if (dtype == "F16") return at::kHalf;
  throw InvalidInput(place, "must be F32, F64, BF16 or F16", dtype);
}

/// Shape of one of the tensors that are stacked in `spec`.
std::vector<std::int64_t> piece_shape(const ParameterSpec& spec) {
  std::vector<std::int64_t> shape = spec.shape;
  shape[0] /= static_cast<std::int64_t>(spec.names.size());
  return shape;
}

struct FoundTensor {
  const StoredTensor& stored;
  at::ScalarType type;
};

/// The tensor of that name, with or without the "bert." prefix, of that shape.
FoundTensor find_tensor(const ModelFolder& folder, const SafetensorsFile& file, const std::string& name, const std::vector<std::int64_t>& shape) {
  const bool prefixed = !file.tensors().contains(name) && file.tensors().contains("bert." + name);
  const StoredTensor& stored = file.tensor(prefixed ? "bert." + name : name, shape);
  return {stored, scalar_type(stored.dtype, (folder.path / "model.safetensors").string() + ": tensor " + name + ": dtype")};
}

/// Uniform in [0, 1), the same on every platform.
double uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

void fill_uniform(at::Tensor parameter, double bound, std::mt19937_64& random) {
  const UncountedMemory staging;
  at::Tensor values = at::empty({parameter.numel()}, at::kDouble);
  for (std::int64_t i = 0; i < values.numel(); ++i) values.data_ptr<double>()[i] = bound * (2 * uniform(random) - 1);
  parameter.copy_(values.view(parameter.sizes()));
}

}  // namespace

ModelFolder open_model_folder(const std::filesystem::path& path) {
  const std::string file = (path / "config.json").string();
  const Json config = Json::parse(read_text_file(file), nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) throw InvalidInput(file, "must be a JSON object", "something else");
  require(config, file, "model_type", "bert");
  require(config, file, "hidden_act", "gelu");
  require(config, file, "position_embedding_type", "absolute");
  ModelFolder folder;
  folder.path = path;
  folder.config = {.hidden_size = positive(config, file, "hidden_size"),
                   .num_hidden_layers = positive(config, file, "num_hidden_layers"),
                   .num_attention_heads = positive(config, file, "num_attention_heads"),
                   .intermediate_size = positive(config, file, "intermediate_size"),
                   .vocab_size = positive(config, file, "vocab_size"),
                   .max_position_embeddings = positive(config, file, "max_position_embeddings"),
                   .type_vocab_size = positive(config, file, "type_vocab_size"),
                   .layer_norm_eps = epsilon_of(config, file),
                   .num_labels = 2};
  if (folder.config.hidden_size % folder.config.num_attention_heads != 0) {
    throw InvalidInput(file + ": num_attention_heads", fmt::format("must divide hidden_size ({})", folder.config.hidden_size),
                       std::to_string(folder.config.num_attention_heads));
  }
  if (config.contains("id2label") && config["id2label"].is_object()) {
    for (std::size_t i = 0; i < config["id2label"].size(); ++i) {
      const std::string key = std::to_string(i);
      if (!config["id2label"].contains(key) || !config["id2label"][key].is_string()) throw InvalidInput(file + ": id2label", "must name labels 0, 1, 2, ...", config["id2label"].dump());
      folder.label_names.push_back(config["id2label"][key]);
    }
    folder.config.num_labels = static_cast<std::int64_t>(folder.label_names.size());
  }
  const Json path_given = config.value("_name_or_path", Json(""));
  const std::string given = path_given.is_string() ? path_given.get<std::string>() : "";
  folder.name = given.empty() ? std::filesystem::weakly_canonical(path).filename().string() : given.substr(given.rfind('/') + 1);
  return folder;
}

void check_weights(const ModelFolder& folder, const SafetensorsFile& file) {
  for (int layer = 0; layer <= 2 * folder.config.num_hidden_layers; ++layer) {
    for (const ParameterSpec& spec : parameters_of(folder.config, layer)) {
      for (const std::string& name : spec.names) find_tensor(folder, file, name, piece_shape(spec));
    }
  }
}

void load_layer(const ModelFolder& folder, const SafetensorsFile& file, int layer, std::uint64_t seed, LayerState& state) {
  const at::NoGradGuard no_grad;
  const std::vector<ParameterSpec> specs = parameters_of(folder.config, layer);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const std::vector<std::int64_t> shape = piece_shape(specs[i]);
    const bool is_head = specs[i].names[0].starts_with("classifier.");
    if (is_head && !file.tensors().contains(specs[i].names[0])) {
      std::mt19937_64 random(seed * 1000003 + i);
      fill_uniform(state.parameters[i], 1 / std::sqrt(static_cast<double>(folder.config.hidden_size)), random);
      continue;
    }
    std::int64_t row = 0;
    for (const std::string& name : specs[i].names) {
      const FoundTensor found = find_tensor(folder, file, name, shape);
      const at::Tensor values = at::from_blob(const_cast<std::byte*>(found.stored.data.data()), shape, found.type);
      state.parameters[i].narrow(0, row, shape[0]).copy_(values);
      row += shape[0];
    }
  }
}

void randomise_layer(const EncoderConfig& config, int layer, std::uint64_t seed, LayerState& state) {
  const at::NoGradGuard no_grad;
  const std::vector<ParameterSpec> specs = parameters_of(config, layer);
  std::mt19937_64 random(seed * 7919 + static_cast<std::uint64_t>(layer));
  for (std::size_t i = 0; i < specs.size(); ++i) {
    fill_uniform(state.parameters[i], specs[i].matrix ? 0.3 : 0.1, random);
    if (specs[i].names[0].ends_with("LayerNorm.weight")) state.parameters[i].add_(1);
  }
}

void save_model_folder(const ModelFolder& source, const std::vector<std::string>& label_names, const std::map<int, LayerState>& layers,
                       const std::vector<int>& holder_of, Communicator& communicator, const std::filesystem::path& target) {
  const at::NoGradGuard no_grad;
  const UncountedMemory host;
  EncoderConfig config = source.config;
  config.num_labels = static_cast<std::int64_t>(label_names.size());
  const bool writes = communicator.rank() == 0;
  std::unique_ptr<SafetensorsWriter> writer;
  if (writes) {
    std::vector<SafetensorsWriter::Entry> entries;
    for (int layer = 0; layer < static_cast<int>(holder_of.size()); ++layer) {
      for (const ParameterSpec& spec : parameters_of(config, layer)) {
        for (const std::string& name : spec.names) entries.push_back({name, "F32", piece_shape(spec)});
      }
    }
    writer = std::make_unique<SafetensorsWriter>(target / "model.safetensors", std::move(entries));
  }
  for (int layer = 0; layer < static_cast<int>(holder_of.size()); ++layer) {
    const int holder = holder_of[layer];
    const bool holds = holder == communicator.rank();
    const std::vector<ParameterSpec> specs = parameters_of(config, layer);
    std::int64_t count = 0;
    for (const ParameterSpec& spec : specs) count += spec.count();
    at::Tensor weights;
    const std::string what = fmt::format("collecting layer {} for the model folder", layer);
    if (holds) weights = layers.at(layer).weights.to(at::kCPU, at::kFloat).contiguous();
    if (holds && !writes) communicator.everyone().send(weights, 0, layer, what).wait();
    if (!writes) continue;
    if (!holds) {
      weights = at::empty({count}, at::kFloat);
      communicator.everyone().receive(weights, holder, layer, what).wait();
    }
    const auto* data = reinterpret_cast<const std::byte*>(weights.data_ptr<float>());
    for (const ParameterSpec& spec : specs) {
      const std::size_t bytes = static_cast<std::size_t>(spec.count()) * 4 / spec.names.size();
      for (std::size_t i = 0; i < spec.names.size(); ++i, data += bytes) writer->write({data, bytes});
    }
  }
  if (!writes) return;
  writer->finish();
  Json json = Json::parse(read_text_file(source.path / "config.json"));
  json["architectures"] = {"BertForSequenceClassificationMeanPooling"};
  json["pooling"] = "masked mean over the tokens, then classifier";
  json["num_labels"] = config.num_labels;
  json["id2label"] = Json::object();
  json["label2id"] = Json::object();
  for (std::size_t i = 0; i < label_names.size(); ++i) {
    json["id2label"][std::to_string(i)] = label_names[i];
    json["label2id"][label_names[i]] = i;
  }
  write_file_atomically(target / "config.json", json.dump(2) + "\n");
  for (const char* name : {"vocab.txt", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}) {
    if (std::filesystem::exists(source.path / name)) write_file_atomically(target / name, read_text_file(source.path / name));
  }
}

}  // namespace frostpipe
