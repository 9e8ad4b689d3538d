#pragma once
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "executor/checkpoint/checkpoint.h"
#include "executor/communication/communicator.h"

namespace frostpipe {

/// The folder of a run's checkpoints as its ranks see it: one folder that all ranks share, or one per host or group of
/// hosts, each with a share of every checkpoint (scattered_checkpoint.h).
struct CheckpointFolder {
  std::filesystem::path root;
  std::vector<int> folder_of_rank;  // index by rank: equal if ranks see the same folder
  std::vector<std::string> hosts;   // names by rank; empty if all ranks share the folder
  std::string start;  // identifies this start of the run, equal on all ranks; "" with frostpipe's launcher

  bool is_shared() const { return hosts.empty(); }
  /// True for the rank that completes and removes checkpoints of its folder.
  bool is_first_of_its_folder(int rank) const {
    return std::find(folder_of_rank.begin(), folder_of_rank.end(), folder_of_rank[rank]) - folder_of_rank.begin() ==
           rank;
  }
};

/// Returns the folder for ranks of one host that frostpipe's launcher has started.
CheckpointFolder shared_checkpoint_folder(const std::filesystem::path& root, int world_size);

/// Finds out by temporary files in `root` which ranks share it. Ranks of one host are taken to share it. Must be called
/// by all ranks.
CheckpointFolder checkpoint_folder_of(const std::filesystem::path& root, Communicator& communicator);

/// Prepares a run that resumes from `from`, a checkpoint or a folder of them: copies the shares of that checkpoint, or
/// of the newest one there, between the folders, so that each has all of it. A folder of the same step that is
/// damaged or belongs to another run is replaced if it is in `folder`. Does nothing if there is no checkpoint. Must be
/// called by all ranks. Throws InvalidInput, on all ranks alike, if there are checkpoints but none has every layer
/// intact somewhere, and if elsewhere than in `folder` another checkpoint would be replaced.
void bring_checkpoint_together(const CheckpointFolder& folder, const std::filesystem::path& from,
                               Communicator& communicator);

/// Called after rank 0 has chosen the checkpoint to resume from and removed later ones (keep_checkpoints_up_to). Does
/// the same in the folders that rank 0 does not see, and removes partial checkpoints there. If `chosen` has no folder,
/// the run begins anew and no checkpoint is kept.
void follow_first_rank(const CheckpointFolder& folder, const Checkpoint& chosen, int rank);

}  // namespace frostpipe
