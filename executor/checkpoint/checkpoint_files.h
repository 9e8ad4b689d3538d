#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "executor/checkpoint/safetensors.h"

// What checkpoints of all kinds are made of: files that the first of them lists with their hashes.

namespace frostpipe {

inline constexpr std::string_view kCheckpointManifest = "checkpoint.json";

/// A file of a checkpoint.
struct CheckpointFile {
  std::string name;
  Bytes bytes = 0;
  std::string hash;       // content_hash, "" where another host has it
  std::string host = {};  // that wrote it, where hosts do not share the folder; else ""
  bool operator==(const CheckpointFile&) const = default;
};

/// hash_bytes as 16 hex digits.
std::string content_hash(std::string_view text);

/// The entry of a file with that content.
CheckpointFile file_of(std::string_view name, std::string_view text);

/// The entry of that name. Throws InvalidInput, which names the checkpoint's folder, if there is none.
const CheckpointFile& entry_of(const std::vector<CheckpointFile>& files, std::string_view name,
                               const std::filesystem::path& folder);

/// A listed file of the folder, after its hash has been compared. Throws InvalidInput.
std::string read_listed(const std::vector<CheckpointFile>& files, std::string_view name,
                        const std::filesystem::path& folder);
SafetensorsFile open_listed(const CheckpointFile& listed, const std::filesystem::path& folder);

/// Throws the InvalidInput for a file that is torn or was changed.
[[noreturn]] void refuse_changed_file(const std::filesystem::path& path);

/// The folder's entries reach the disk. Throws RuntimeFailure.
void synchronize_folder(const std::filesystem::path& folder);

/// Gives a folder in which all is written its name, whatever had it before, when it has reached the disk. Throws
/// RuntimeFailure or std::system_error.
void publish_checkpoint(const std::filesystem::path& unfinished, const std::filesystem::path& whole);

}  // namespace frostpipe
