#pragma once
#include <filesystem>
#include <string>

namespace frostpipe {

/// Identifies the contents of a model folder: hashes of the files from which a served model is read, with their names.
struct FolderBytes {
  std::string weights;
  std::string others;  // config.json, and the files that convert a text or picture to the model's input
  bool operator==(const FolderBytes&) const = default;
};

/// Hashes the files of a folder that FolderBytes describes. The server calls it before it reads the model, and a worker
/// after it has loaded its part, so that any change in between is detected. Throws InvalidInput if a file cannot be
/// read.
FolderBytes read_folder_bytes(const std::filesystem::path& folder);

}  // namespace frostpipe
