#include "executor/nets/net_folder.h"

#include <ATen/core/grad_mode.h>

#include <nlohmann/json.hpp>

#include "executor/models/folder/config_fields.h"
#include "executor/models/folder/mapped_tensor.h"
#include "executor/models/folder/model_config.h"
#include "executor/models/folder/model_folder.h"
#include "executor/nets/net_tensors.h"
#include "executor/nets/resnet_config.h"
#include "profiles/error.h"
#include "profiles/files.h"
#include "profiles/model_source.h"

namespace frostpipe {
namespace {

constexpr int kMostPixels = 4096;  // of a side

/// preprocessor_config.json's size, as a square; 224 without one, as transformers' own.
int picture_size_of(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "preprocessor_config.json";
  if (!std::filesystem::exists(path)) return ResNetShape().picture_size;
  const std::string file = path.string(), text = read_text_file(path);
  const ConfigFields fields(text, file);
  const auto size = fields.json().value("size", nlohmann::ordered_json());
  if (size.is_null()) return ResNetShape().picture_size;
  nlohmann::ordered_json pixels = size;
  if (size.is_object() && size.contains("shortest_edge")) pixels = size["shortest_edge"];
  if (size.is_object() && size.contains("height") && size.value("width", nlohmann::ordered_json()) == size["height"])
    pixels = size["height"];
  if (!pixels.is_number_integer() || pixels.get<std::int64_t>() < 1 || pixels.get<std::int64_t>() > kMostPixels)
    throw InvalidInput(file + ": size",
                       "must be a number of pixels up to " + std::to_string(kMostPixels) +
                           ", as shortest_edge or as equal height and width",
                       size.dump());
  return pixels.get<int>();
}

/// The naming of the files: the first in which the first layer's kernel is there, else transformers'.
TensorNaming naming_of(const NetFolder& folder, const WeightFiles& files) {
  for (const TensorNaming naming : kTensorNamings)
    if (files.find(tensors_of(folder.net.layers.front(), naming).front().name)) return naming;
  return TensorNaming::transformers;
}

bool is_classifier(const NetFolder& folder, const NetLayer& layer) { return &layer == &folder.net.layers.back(); }

/// A classifier counts where it is for these labels, which its rows tell too.
bool is_there(const NetFolder& folder, const NetLayer& layer, const WeightFiles& files, const NetTensor& tensor) {
  const StoredTensor* const stored = files.find(tensor.name);
  if (!is_classifier(folder, layer) || !stored) return stored != nullptr;
  return !folder.classifies_other_labels && stored->shape == tensor.shape;
}

}  // namespace

bool is_net_folder(const std::filesystem::path& path) {
  const std::filesystem::path file = path / "config.json";
  if (!std::filesystem::is_regular_file(file)) return false;
  const auto json = nlohmann::json::parse(read_text_file(file), nullptr, /*allow_exceptions=*/false);
  return json.is_object() && json.value("model_type", nlohmann::json()) == "resnet";
}

NetFolder open_net_folder(const std::filesystem::path& path) {
  require_model_folder(path);
  const std::string file = (path / "config.json").string(), text = read_text_file(file);
  NetFolder folder{.path = path,
                   .config = resnet_from_config(text, file, picture_size_of(path)),
                   .label_names = label_names_from_json(text, file),
                   .name = model_name(path, text),
                   .normalisation = read_normalisation(path)};
  if (!folder.label_names.empty()) folder.config.num_classes = static_cast<int>(folder.label_names.size());
  folder.net = resnet(folder.name, folder.config);
  return folder;
}

void set_labels(NetFolder& folder, const std::vector<std::string>& label_names) {
  folder.classifies_other_labels = are_other_labels(folder.label_names, label_names);
  folder.label_names = label_names;
  folder.config.num_classes = static_cast<int>(label_names.size());
  folder.net = resnet(folder.name, folder.config);
}

std::vector<std::string> check_weights(const NetFolder& folder, const WeightFiles& files) {
  if (files.empty()) return {"the whole model"};
  std::vector<std::string> missing;
  const TensorNaming naming = naming_of(folder, files);
  for (const NetLayer& layer : folder.net.layers)
    for (const NetTensor& tensor : tensors_of(layer, naming)) {
      if (may_be_missing(tensor)) continue;
      if (is_there(folder, layer, files, tensor))
        mapped_tensor(files, tensor.name, tensor.shape);
      else if (is_classifier(folder, layer))
        missing.push_back(tensor.name + (files.find(tensor.name) ? " (there, but for other labels)" : ""));
      else
        throw InvalidInput(files.place_of(tensor.name), "must be there", "missing");
    }
  return missing;
}

NetState load_state(const NetFolder& folder, const WeightFiles& files, std::uint64_t seed) {
  const at::NoGradGuard no_grad;
  NetState state = random_state(folder.net, seed, at::kFloat);
  if (files.empty()) return state;
  const TensorNaming naming = naming_of(folder, files);
  for (std::size_t i = 0; i < state.size(); ++i)
    for (const NetTensor& tensor : tensors_of(folder.net.layers[i], naming)) {
      if (!is_there(folder, folder.net.layers[i], files, tensor)) continue;
      const auto stored = mapped_tensor(files, tensor.name, tensor.shape);
      if (tensor.part == NetTensor::Part::num_batches)
        state[i].num_batches = stored.item<std::int64_t>();
      else
        values_of(folder.net.layers[i], state[i], tensor).copy_(stored);
    }
  return state;
}

void write_net_folder(const NetFolder& source, const NetState& state, const std::filesystem::path& target) {
  const at::NoGradGuard no_grad;
  std::vector<SafetensorsWriter::Entry> entries;
  for (const NetLayer& layer : source.net.layers)
    for (const NetTensor& tensor : tensors_of(layer, TensorNaming::transformers))
      entries.push_back({tensor.name, tensor.part == NetTensor::Part::num_batches ? "I64" : "F32", tensor.shape});
  SafetensorsWriter writer(target / "model.safetensors", std::move(entries));
  for (std::size_t i = 0; i < state.size(); ++i)
    for (const NetTensor& tensor : tensors_of(source.net.layers[i], TensorNaming::transformers)) {
      if (tensor.part == NetTensor::Part::num_batches) {
        writer.write(std::as_bytes(std::span(&state[i].num_batches, 1)));
        continue;
      }
      const auto values = values_of(source.net.layers[i], state[i], tensor).to(at::kFloat).contiguous();
      writer.write({reinterpret_cast<const std::byte*>(values.data_ptr<float>()), values.nbytes()});
    }
  writer.finish();
  auto config = nlohmann::ordered_json::parse(read_text_file(source.path / "config.json"));
  config["architectures"] = {"ResNetForImageClassification"};
  config["dtype"] = "float32";
  config.erase("torch_dtype");
  set_label_names(config, source.label_names);
  write_file_atomically(target / "config.json", config.dump(2) + "\n");
  write_file_atomically(target / "preprocessor_config.json",
                        preprocessor_config(source.path, source.config.picture_size));
}

}  // namespace frostpipe
