#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "executor/checkpoint/safetensors.h"

// The files of a checkpoint, which its manifest lists with their sizes and hashes.

namespace frostpipe {

inline constexpr std::string_view kCheckpointManifest = "checkpoint.json";

/// A file of a checkpoint.
struct CheckpointFile {
  std::string name;
  Bytes bytes = 0;
  std::string hash;       // from content_hash(); "" if another host has the file
  std::string host = {};  // the host that wrote it, if hosts do not share the folder; else ""
  bool operator==(const CheckpointFile&) const = default;
};

/// Returns hash_bytes() as 16 hex digits.
std::string content_hash(std::string_view text);

/// Returns the entry of a file with that content.
CheckpointFile file_of(std::string_view name, std::string_view text);

/// Returns the entry of that name. Throws InvalidInput that names the checkpoint's folder if there is none.
const CheckpointFile& entry_of(const std::vector<CheckpointFile>& files, std::string_view name,
                               const std::filesystem::path& folder);

/// Read or open a listed file after checking its hash (open_listed also its size). Throw InvalidInput.
std::string read_listed(const std::vector<CheckpointFile>& files, std::string_view name,
                        const std::filesystem::path& folder);
SafetensorsFile open_listed(const CheckpointFile& listed, const std::filesystem::path& folder);

/// Throws InvalidInput, which says that the file is truncated or was changed.
[[noreturn]] void refuse_changed_file(const std::filesystem::path& path);

/// Syncs the folder's entries to disk. Throws RuntimeFailure.
void synchronize_folder(const std::filesystem::path& folder);

/// Syncs a completely written folder to disk and then renames it to its final name. A folder that has this name already
/// is removed. Throws RuntimeFailure or std::system_error.
void publish_checkpoint(const std::filesystem::path& unfinished, const std::filesystem::path& whole);

}  // namespace frostpipe
