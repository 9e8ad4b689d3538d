#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "executor/checkpoint/safetensors.h"

namespace frostpipe {

/// The weights of a Hugging Face folder: model.safetensors, or the parts listed in model.safetensors.index.json. The
/// files are mapped and read on demand, so a rank needs memory for its own layers only.
class WeightFiles {
 public:
  /// Opens the files; empty for a folder without weights. Throws InvalidInput that names the file and, for the index,
  /// the tensor; also if there are only weights in another format.
  explicit WeightFiles(const std::filesystem::path& folder);
  bool empty() const { return files_.empty(); }
  /// Returns null if there is no such tensor.
  const StoredTensor* find(const std::string& name) const;
  /// Throws InvalidInput that names the file if there is no such tensor, or its shape differs.
  const StoredTensor& tensor(const std::string& name, const std::vector<std::int64_t>& shape) const;
  /// Returns the file that has the tensor, or should have it, for messages.
  std::string place_of(const std::string& name) const;

 private:
  std::filesystem::path folder_;
  std::vector<std::pair<std::filesystem::path, SafetensorsFile>> files_;
  std::map<std::string, std::size_t> file_of_;
};

}  // namespace frostpipe
