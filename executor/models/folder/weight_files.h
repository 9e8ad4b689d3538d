#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "executor/checkpoint/safetensors.h"

namespace frostpipe {

/// The weights in a Hugging Face folder: model.safetensors, or the parts that model.safetensors.index.json lists. All
/// are mapped, none is read before it is asked for, so that a rank needs memory for its own layers alone.
class WeightFiles {
 public:
  /// Empty for a folder without weights. Throws InvalidInput that names the file and, of the index, the tensor; also
  /// where there are weights in another form only.
  explicit WeightFiles(const std::filesystem::path& folder);
  bool empty() const { return files_.empty(); }
  /// Null if there is none of that name.
  const StoredTensor* find(const std::string& name) const;
  /// Throws InvalidInput naming the file if there is no such tensor, or its shape is another one.
  const StoredTensor& tensor(const std::string& name, const std::vector<std::int64_t>& shape) const;
  /// For messages: where the tensor is, or would be looked for.
  std::string place_of(const std::string& name) const;

 private:
  std::filesystem::path folder_;
  std::vector<std::pair<std::filesystem::path, SafetensorsFile>> files_;
  std::map<std::string, std::size_t> file_of_;
};

}  // namespace frostpipe
