#pragma once
#include <filesystem>
#include <string>

namespace frostpipe {

/// By which a model folder's content is known again: hashes of the files that a served model is read from, under their
/// names.
struct FolderBytes {
  std::string weights;
  std::string others;  // config.json, and what makes a request's text or picture the model's input
  bool operator==(const FolderBytes&) const = default;
};

/// Reads all of these files. The server calls it before it reads the model, and a worker after it has loaded its part
/// and compares: so a change between the two is found, whenever it comes. Throws InvalidInput where one cannot be read.
FolderBytes read_folder_bytes(const std::filesystem::path& folder);

}  // namespace frostpipe
