#pragma once
#include <functional>
#include <optional>
#include <string>

#include "executor/checkpoint/checkpoint.h"
#include "executor/execute.h"

namespace frostpipe {

/// Returns the folder of a run's checkpoints.
std::filesystem::path checkpoints_folder(const TrainOptions& options);

/// Returns where a starting run looks for a checkpoint, by TrainOptions::resume: a checkpoint, or a folder of them; ""
/// if it begins at step 0.
std::filesystem::path folder_to_resume(const TrainOptions& options);

/// True if there is a checkpoint, intact or not, from which a starting run would resume.
bool may_go_on(const TrainOptions& options);

/// Returns the checkpoint from which a starting run resumes, by TrainOptions::resume; nothing if it begins at step 0.
/// Removes partial checkpoints from the run's folder. `note` is told about checkpoints that are skipped. Throws
/// InvalidInput if `resume` names a place without an intact checkpoint, if the folder has an unfinished run without an
/// intact checkpoint, or if the checkpoint is of a run with other settings.
std::optional<Checkpoint> checkpoint_to_resume(const TrainOptions& options, const RunSettings& settings,
                                               const std::function<void(const std::string&)>& note);

/// Returns the folder of the checkpoint, of any kind, from which a run resumes, by TrainOptions::resume; "" if it
/// begins at step 0. `read` throws InvalidInput if a folder's checkpoint is not intact. Otherwise does the same as
/// checkpoint_to_resume().
std::filesystem::path whole_checkpoint_to_resume(const TrainOptions& options,
                                                 const std::function<void(const std::filesystem::path&)>& read,
                                                 const std::function<void(const std::string&)>& note);

/// Throws InvalidInput if the checkpoint in `folder` is of a run with other settings.
void require_same_settings(const RunSettings& saved, const RunSettings& now, const std::filesystem::path& folder);

/// Returns the message of a run that was asked to end before its step `step` of `num_steps`: how to continue it.
std::string stopped_early(const TrainOptions& options, int step, int num_steps, bool checkpoint_is_written);

/// Calls newest_whole_checkpoint(); `note` is told which newer ones are skipped, and why.
NewestCheckpoint newest_checkpoint(const std::filesystem::path& root,
                                   const std::function<void(const std::string&)>& note);

/// True if that checkpoint is one of those below `root`.
bool lies_in(const std::filesystem::path& root, const std::filesystem::path& folder);

/// Removes the checkpoints below `root` to which a run that resumes from that of `step` in the folder `found` ("" for
/// none) cannot go back: it keeps those up to `found` if that is below `root`, otherwise none. Returns whether it is.
bool keep_checkpoints_up_to(const std::filesystem::path& found, int step, const std::filesystem::path& root);

}  // namespace frostpipe
