#include "executor/models/folder/weight_files.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/parse_json.h"

namespace frostpipe {
namespace {

/// Throws InvalidInput if the folder has weights in another format: without weights the model would start at random,
/// which is surely not intended then.
void refuse_other_weights(const std::filesystem::path& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string(), extension = entry.path().extension().string();
    if (extension == ".safetensors" || name.starts_with("pytorch_model") || name.starts_with("tf_model") ||
        name.starts_with("flax_model"))
      throw InvalidInput(folder.string(),
                         "must hold its weights as model.safetensors or model.safetensors.index.json (transformers' "
                         "save_pretrained writes them), or none, to start at random",
                         name + " alone");
  }
}

}  // namespace

WeightFiles::WeightFiles(const std::filesystem::path& folder) : folder_(folder) {
  const std::filesystem::path whole = folder / "model.safetensors", index = folder / "model.safetensors.index.json";
  if (std::filesystem::exists(whole)) {
    files_.emplace_back(whole, SafetensorsFile(whole));
    for (const auto& [name, tensor] : files_.back().second.tensors()) file_of_.emplace(name, 0);
    return;
  }
  if (!std::filesystem::exists(index)) {
    refuse_other_weights(folder);
    return;
  }
  const std::string text = read_text_file(index);
  const auto json = parse_json<nlohmann::json>(text, index.string());
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object()) {
    throw InvalidInput(index.string() + ": weight_map", "must be a JSON object of file names by tensor",
                       json.is_object() ? "missing" : "something else");
  }
  std::map<std::string, std::size_t> numbers;
  for (const auto& [tensor, file] : json["weight_map"].items()) {
    const std::string place = index.string() + ": weight_map: " + tensor;
    if (!file.is_string()) throw InvalidInput(place, "must be a file name", file.dump());
    const std::string name = file.get<std::string>();
    if (std::filesystem::path(name).filename() != name) throw InvalidInput(place, "must be a file beside it", name);
    const auto [found, is_new] = numbers.try_emplace(name, files_.size());
    if (is_new) files_.emplace_back(folder / name, SafetensorsFile(folder / name));
    if (!files_[found->second].second.tensors().contains(tensor))
      throw InvalidInput(place, "must name the file that holds it", name);
    file_of_.emplace(tensor, found->second);
  }
}

const StoredTensor* WeightFiles::find(const std::string& name) const {
  const auto found = file_of_.find(name);
  return found == file_of_.end() ? nullptr : &files_[found->second].second.tensors().at(name);
}

const StoredTensor& WeightFiles::tensor(const std::string& name, const std::vector<std::int64_t>& shape) const {
  const auto found = file_of_.find(name);
  if (found == file_of_.end()) throw InvalidInput(place_of(name), "must be there", "missing");
  return files_[found->second].second.tensor(name, shape);
}

std::string WeightFiles::place_of(const std::string& name) const {
  const auto found = file_of_.find(name);
  const std::filesystem::path file = found != file_of_.end() ? files_[found->second].first
                                     : files_.size() == 1    ? files_.front().first
                                                             : folder_;
  return file.string() + ": tensor " + name;
}

}  // namespace frostpipe
