#pragma once
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "executor/checkpoint/checkpoint.h"
#include "executor/communication/communicator.h"

namespace frostpipe {

/// The folder of a run's checkpoints as its ranks see it: one that all share, or one for each host, or for each of some
/// groups of hosts. Each such place has its own part of every checkpoint (scattered_checkpoint.h).
struct CheckpointFolder {
  std::filesystem::path root;
  std::vector<int> places;         // by rank: equal where ranks see the same folder
  std::vector<std::string> hosts;  // by rank: their names; empty where all share it
  std::string start;               // of the run, another one at each; equal on all ranks

  bool is_shared() const { return hosts.empty(); }
  /// That rank completes checkpoints there, and removes them.
  bool is_first_of_its_place(int rank) const {
    return std::find(places.begin(), places.end(), places[rank]) - places.begin() == rank;
  }
};

/// Of ranks of one host, which our launcher has started.
CheckpointFolder shared_checkpoint_folder(const std::filesystem::path& root, int world_size);

/// Finds out, by files that are there for a moment, who shares `root`. Called by all ranks.
CheckpointFolder checkpoint_folder_of(const std::filesystem::path& root, Communicator& communicator);

/// Before a run goes on from `from`, a checkpoint or a folder of them: brings what the places have of it, or of the
/// newest one there, to all of them, so that each has all of it. Called by all ranks. Throws InvalidInput, on all
/// alike, if there are checkpoints and of none every layer is whole somewhere.
void bring_checkpoint_together(const CheckpointFolder& folder, const std::filesystem::path& from,
                               Communicator& communicator);

/// After rank 0 has chosen what the run goes on from (without a folder: the beginning) and removed what came after it:
/// does the same in the places that rank 0 does not see.
void follow_first_rank(const CheckpointFolder& folder, const Checkpoint& chosen, int rank);

}  // namespace frostpipe
