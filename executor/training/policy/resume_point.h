#pragma once
#include <functional>
#include <optional>
#include <string>

#include "executor/checkpoint/checkpoint.h"
#include "executor/execute.h"

namespace frostpipe {

/// Where a run's folder has its checkpoints.
std::filesystem::path checkpoints_folder(const TrainOptions& options);

/// Where a run which is started looks for that, as TrainOptions::resume says: a checkpoint, or a folder of them; "" if
/// it begins at step 0.
std::filesystem::path folder_to_resume(const TrainOptions& options);

/// Whether there is a checkpoint, whole or not, that a run which is started would go on from.
bool may_go_on(const TrainOptions& options);

/// The checkpoint that a run which is started goes on from, as TrainOptions::resume says; none if it begins at step 0.
/// Removes what interrupted writers have left in the run's folder. `note` is told which checkpoints are passed over.
/// Throws InvalidInput if what `resume` names has no whole checkpoint, if the folder holds a run that has not ended and
/// no checkpoint of it is whole, or if the checkpoint is of a run with other settings.
std::optional<Checkpoint> checkpoint_to_resume(const TrainOptions& options, const RunSettings& settings,
                                               const std::function<void(const std::string&)>& note);

/// The folder of the checkpoint that a run goes on from, as TrainOptions::resume says, of whatever kind; "" if it
/// begins at step 0. `read` throws InvalidInput where a folder's checkpoint is not whole. Otherwise as
/// checkpoint_to_resume.
std::filesystem::path whole_checkpoint_to_resume(const TrainOptions& options,
                                                 const std::function<void(const std::filesystem::path&)>& read,
                                                 const std::function<void(const std::string&)>& note);

/// Throws InvalidInput if the checkpoint in `folder` is of a run with other settings.
void require_same_settings(const RunSettings& saved, const RunSettings& now, const std::filesystem::path& folder);

/// What a run that was asked to end says, before its step `step` of `num_steps`: how it goes on.
std::string stopped_early(const TrainOptions& options, int step, int num_steps, bool checkpoint_is_written);

/// newest_whole_checkpoint; `note` is told which newer ones are passed over, and why.
NewestCheckpoint newest_checkpoint(const std::filesystem::path& root,
                                   const std::function<void(const std::string&)>& note);

/// Whether the checkpoint of that folder is one of those below `root`.
bool lies_in(const std::filesystem::path& root, const std::filesystem::path& folder);

/// Leaves only the checkpoints below `root` that a run which goes on from that of `step` in the folder `found`, "" for
/// none, may still go back to: those up to it, if it is one of them, else none. True if it is one of them.
bool keep_checkpoints_up_to(const std::filesystem::path& found, int step, const std::filesystem::path& root);

}  // namespace frostpipe
