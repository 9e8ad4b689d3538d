#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "executor/checkpoint/checkpoint.h"

namespace frostpipe {

// Hosts that do not share the run's folder each store a share of a checkpoint: the layers that their ranks have
// written, and JSON files. A host's checkpoint.json lists the other hosts' layers with those hosts' names and no hash.

/// The share of a checkpoint that one host has.
struct CheckpointShare {
  int step = 0;
  std::string run;                    // a hash of settings, plan and attempt, equal for all shares of a checkpoint
  std::vector<CheckpointFile> whole;  // layers of this host whose every byte is as it was written
  std::vector<CheckpointFile> lacks;  // the other layers, with the hosts that wrote them
  bool operator==(const CheckpointShare&) const = default;
};

/// Returns the shares in a host's folder of checkpoints, the newest first, or the single one if `root` is itself a
/// checkpoint. Reads every layer to check its hash. Skips shares with damaged JSON files.
std::vector<CheckpointShare> shares_in(const std::filesystem::path& root);

std::string to_text(const std::vector<CheckpointShare>& shares);
std::vector<CheckpointShare> shares_from_text(const std::string& text);

/// A checkpoint whose layers are each intact on some host.
struct GatheredCheckpoint {
  struct Source {
    CheckpointFile file;
    int rank = 0;  // the lowest rank that has it
  };
  int step = 0;
  std::string run;  // as CheckpointShare::run
  std::vector<Source> layers;
  int manifest_rank = 0;  // the lowest rank that has the JSON files
};

/// Returns the newest checkpoint of which each layer is intact on some host; nothing if no rank has any checkpoint.
/// `shares` is indexed by rank; a rank that uses the same folder as a lower one has no shares. Throws InvalidInput if
/// there are checkpoints but none is intact; it names the lost layers of the newest one and the hosts that wrote them.
std::optional<GatheredCheckpoint> newest_gathered(const std::vector<std::vector<CheckpointShare>>& shares);

/// Adds the layers that were copied into the folder to its manifest, which makes it an ordinary checkpoint.
void complete_manifest(const std::filesystem::path& folder, const std::vector<CheckpointFile>& layers);

}  // namespace frostpipe
