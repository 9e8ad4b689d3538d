#pragma once
#include <functional>
#include <optional>
#include <string>

#include "executor/checkpoint/checkpoint.h"
#include "executor/execute.h"

namespace frostpipe {

/// Returns the folder of a run's checkpoints.
std::filesystem::path checkpoints_folder(const TrainOptions& options);

/// Returns the path at which a starting run looks for a checkpoint, by TrainOptions::resume: a checkpoint, or a folder
/// of them; "" if the run begins at step 0.
std::filesystem::path folder_to_resume(const TrainOptions& options);

/// True if there is a checkpoint, intact or not, from which a starting run would resume.
bool may_go_on(const TrainOptions& options);

/// Returns the checkpoint from which a starting run resumes, by TrainOptions::resume; nothing if it begins at step 0.
/// Removes partial checkpoints and files from the run's folder. `note` is told about checkpoints that are skipped.
/// Throws InvalidInput if `resume` names a place without an intact checkpoint, if the run's folder has checkpoints of
/// an unfinished run but no intact one, or if the checkpoint is of a run with other settings.
std::optional<Checkpoint> checkpoint_to_resume(const TrainOptions& options, const RunSettings& settings,
                                               const std::function<void(const std::string&)>& note);

/// Throws InvalidInput if the checkpoint in `folder` is of a run with other settings.
void require_same_settings(const RunSettings& saved, const RunSettings& now, const std::filesystem::path& folder);

/// Returns the message of a run that was asked to end before step `step` of `num_steps`. It says how to continue the
/// run, or that its checkpoint is missing.
std::string stopped_early(const TrainOptions& options, int step, int num_steps, bool checkpoint_is_written);

/// Calls newest_whole_checkpoint(); `note` is told which newer ones are skipped, and why.
NewestCheckpoint newest_checkpoint(const std::filesystem::path& root,
                                   const std::function<void(const std::string&)>& note);

/// True if the checkpoint `folder` is directly below `root`, however the paths name them ("..", links): itself, or the
/// folder to which it is a link.
bool lies_in(const std::filesystem::path& root, const std::filesystem::path& folder);

/// Removes the checkpoints below `root` that do not belong to a run that resumes from the checkpoint `found` of step
/// `step` ("": from none): the later ones if `found` lies_in() `root`, otherwise all. Returns whether it does.
bool keep_checkpoints_up_to(const std::filesystem::path& found, int step, const std::filesystem::path& root);

}  // namespace frostpipe
