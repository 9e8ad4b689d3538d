#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "executor/checkpoint/checkpoint.h"

namespace frostpipe {

// Hosts that do not share the run's folder have checkpoints in parts: each the layers that its ranks have written, and
// the same JSON files, in which the others' layers are listed with the names of their hosts and no hash.

/// What one host has of a checkpoint.
struct CheckpointShare {
  int step = 0;
  std::string run;                    // equal for shares of one checkpoint: settings, plan and attempt
  std::vector<CheckpointFile> whole;  // layers that are here, every byte as it was written
  std::vector<CheckpointFile> lacks;  // those that are not, with the hosts that wrote them
  bool operator==(const CheckpointShare&) const = default;
};

/// Of a host's folder of checkpoints, the newest first, or of the checkpoint alone that `root` is. One whose JSON files
/// are damaged is none.
std::vector<CheckpointShare> shares_in(const std::filesystem::path& root);

std::string to_text(const std::vector<CheckpointShare>& shares);
std::vector<CheckpointShare> shares_from_text(const std::string& text);

/// A checkpoint of which every layer is whole somewhere.
struct GatheredCheckpoint {
  struct Source {
    CheckpointFile file;
    int rank = 0;  // the lowest that has it
  };
  int step = 0;
  std::string run;  // as CheckpointShare::run
  std::vector<Source> layers;
  int manifest_rank = 0;  // the lowest that has the JSON files
};

/// The newest such; nothing if no rank has any checkpoint. `shares` are by rank; a rank that looks at the same folder
/// as a lower one has none. Throws InvalidInput if there are checkpoints and none is whole, which names the newest
/// one's lost layers and the hosts that wrote them.
std::optional<GatheredCheckpoint> newest_gathered(const std::vector<std::vector<CheckpointShare>>& shares);

/// The checkpoint's folder with the layers that were just brought there: from now on it is like any other.
void complete_manifest(const std::filesystem::path& folder, const std::vector<CheckpointFile>& layers);

}  // namespace frostpipe
