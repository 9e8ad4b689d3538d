#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "executor/checkpoint/checkpoint.h"
#include "operators/plan/net_run.h"

namespace frostpipe {

/// A snapshot of a net's run by plans of operators: `step` iterations are done. On disk it is a folder
/// (checkpoint_path):
///   checkpoint.json     this struct but for run, with a hash of itself; written last
///   run.json            the epochs so far
///   state.safetensors   of every layer LAYER its weights and momentum (operators/training/net_snapshot.h)
struct NetCheckpoint {
  int step = 0;
  RunSettings settings;
  int frozen_layers = 0;
  double epoch_loss = 0;  // sum over the mini-batches of the epoch that has begun
  std::vector<CheckpointFile> files;
  NetRun run;                    // wall_seconds until now
  std::filesystem::path folder;  // not stored
};

/// Whether the folder's checkpoint is one of a net.
bool is_net_checkpoint(const std::filesystem::path& folder);

/// Writes the two JSON files beside the state, which is `state`, to a folder that publish_checkpoint gives its name.
void write_net_manifest(NetCheckpoint checkpoint, const CheckpointFile& state, const std::filesystem::path& folder);

/// Reads and checks the two JSON files. Throws InvalidInput that names the file and what is wrong with it.
NetCheckpoint read_net_checkpoint(const std::filesystem::path& folder);

/// The layers' tensors, after size and hash have been compared. Throws InvalidInput.
SafetensorsFile open_state(const NetCheckpoint& checkpoint);

inline constexpr std::string_view kNetStateFile = "state.safetensors";

}  // namespace frostpipe
