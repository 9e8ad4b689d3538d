#include "operators/nets/net_folder.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/parse_json.h"
#include "executor/models/folder/mapped_tensor.h"
#include "executor/models/folder/model_config.h"
#include "executor/models/folder/model_folder.h"
#include "operators/nets/net_tensors.h"
#include "profiles/model_source.h"

namespace frostpipe {
namespace {

/// Returns the naming by which the files have the most tensors; the first one if there are no files.
TensorNaming naming_of(const NetFolder& folder, const WeightFiles& files) {
  const auto num_found = [&](TensorNaming naming) {
    int found = 0;
    for (int layer = 0; layer < static_cast<int>(folder.net.layers.size()); ++layer)
      for (const NetTensor& tensor : tensors_of(folder.net, layer, naming)) found += files.find(tensor.name) != nullptr;
    return found;
  };
  return *std::ranges::max_element(folder.family->namings, {}, num_found);
}

void take_label_names(NetFolder& folder, const std::vector<std::string>& label_names) {
  folder.label_names = label_names;
  if (!label_names.empty()) folder.net.layers.back().out_channels = static_cast<int>(label_names.size());
}

bool is_classifier(const NetFolder& folder, const NetLayer& layer) { return &layer == &folder.net.layers.back(); }

/// Returns whether the files have the tensor. A classifier's tensor counts only if it is for the labels to be learnt
/// and has one row for each.
bool is_there(const NetFolder& folder, const NetLayer& layer, const WeightFiles& files, const NetTensor& tensor) {
  const StoredTensor* const stored = files.find(tensor.name);
  if (!is_classifier(folder, layer) || !stored) return stored != nullptr;
  return !folder.classifies_other_labels && stored->shape == tensor.shape;
}

}  // namespace

bool is_net_folder(const std::filesystem::path& path) {
  const std::filesystem::path file = path / "config.json";
  if (!std::filesystem::is_regular_file(file)) return false;
  try {
    return find_net_kind(parse_json<nlohmann::ordered_json>(read_text_file(file), file.string())).has_value();
  } catch (const InvalidInput&) {
    return false;  // the attempt to read the folder as a Transformer reports the error
  }
}

NetFolder open_net_folder(const std::filesystem::path& path) {
  require_model_folder(path);
  const std::string file = (path / "config.json").string(), text = read_text_file(file);
  const ConfigFields fields(text, file);
  const NetFamily& family = family_of(net_kind_of(fields, file));
  const std::string name = model_name(path, text);
  NetShape net = net_from_config(family.kind, name, path, fields);
  const NetConfig config = family.read(path, fields, file);
  fields.require_known();
  NetFolder folder{.path = path,
                   .family = &family,
                   .net = std::move(net),
                   .label_names = {},
                   .name = name,
                   .normalisation = config.normalisation,
                   .dropout = config.dropout};
  take_label_names(folder, config.label_names);
  require_possible(folder.net, file);
  folder.problem_type = problem_type_from_json(text, file, folder.net.layers.back().out_channels);
  return folder;
}

void set_labels(NetFolder& folder, const std::vector<std::string>& label_names) {
  folder.classifies_other_labels = are_other_labels(folder.label_names, label_names);
  take_label_names(folder, label_names);
}

std::vector<std::string> check_weights(const NetFolder& folder, const WeightFiles& files) {
  if (files.empty()) return {"the whole model"};
  std::vector<std::string> missing;
  const TensorNaming naming = naming_of(folder, files);
  for (int i = 0; i < static_cast<int>(folder.net.layers.size()); ++i) {
    const NetLayer& layer = folder.net.layers[i];
    for (const NetTensor& tensor : tensors_of(folder.net, i, naming)) {
      if (may_be_missing(tensor)) continue;
      if (is_there(folder, layer, files, tensor)) {
        mapped_tensor(files, tensor.name, tensor.shape);
        if (is_classifier(folder, layer)) require_single_label(folder.problem_type, folder.path);
      } else if (is_classifier(folder, layer)) {
        missing.push_back(tensor.name + (files.find(tensor.name) ? " (there, but for other labels)" : ""));
      } else {
        throw InvalidInput(files.place_of(tensor.name), "must be there", "missing");
      }
    }
  }
  return missing;
}

NetState load_state(const NetFolder& folder, const WeightFiles& files, std::uint64_t seed) {
  const at::NoGradGuard no_grad;
  NetState state = random_state(folder.net, seed, at::kFloat);
  if (files.empty()) return state;
  const TensorNaming naming = naming_of(folder, files);
  for (int i = 0; i < static_cast<int>(state.size()); ++i)
    for (const NetTensor& tensor : tensors_of(folder.net, i, naming)) {
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
  const TensorNaming naming =
      source.family->is_written_as_read ? naming_of(source, WeightFiles(source.path)) : source.family->namings.front();
  std::vector<SafetensorsWriter::Entry> entries;
  for (int i = 0; i < static_cast<int>(state.size()); ++i)
    for (const NetTensor& tensor : tensors_of(source.net, i, naming))
      entries.push_back({tensor.name, tensor.part == NetTensor::Part::num_batches ? "I64" : "F32", tensor.shape});
  SafetensorsWriter writer(target / "model.safetensors", std::move(entries));
  for (int i = 0; i < static_cast<int>(state.size()); ++i)
    for (const NetTensor& tensor : tensors_of(source.net, i, naming)) {
      if (tensor.part == NetTensor::Part::num_batches) {
        writer.write(std::as_bytes(std::span(&state[i].num_batches, 1)));
        continue;
      }
      const auto values = values_of(source.net.layers[i], state[i], tensor).to(at::kFloat).contiguous();
      writer.write({reinterpret_cast<const std::byte*>(values.data_ptr<float>()), values.nbytes()});
    }
  writer.finish();
  source.family->write_config(source, target);
}

}  // namespace frostpipe
