#include "executor/training/run_origin.h"

#include <string>
#include <system_error>

#include "executor/training/checkpoints/checkpoint_folder.h"
#include "executor/training/policy/resume_point.h"

namespace frostpipe {
namespace {

/// Must be called on rank 0 only. Returns the folder of the checkpoint to resume from, "" if there is none, and removes
/// the files of another run.
std::string prepare_run_folder(const RunContext& run, TrainingState& state, const ScalarLog& scalars) {
  const TrainOptions& options = run.options;
  const std::optional<Checkpoint> found = checkpoint_to_resume(options, state.settings, run.callbacks.note);
  if (!found) scalars.begin_anew();
  if (!keep_checkpoints_up_to(found ? found->folder : "", found ? found->step : 0, checkpoints_folder(options))) {
    StepLog& log = state.recorder.log();
    found ? log.begin_with(std::filesystem::absolute(found->folder).parent_path().parent_path()) : log.begin_anew();
  }
  std::error_code none;
  std::filesystem::remove(options.output / "summary.json", none);  // of the previous run
  return found ? found->folder.string() : "";
}

}  // namespace

std::optional<Checkpoint> find_origin(const RunContext& run, RendezvousRound& round, TrainingState& state,
                                      const ScalarLog& scalars) {
  Communicator& communicator = round.communicator();
  const CheckpointFolder& place = round.checkpoint_folder();
  if (!place.is_shared() || round.lacks_ranks()) {
    const std::string root = communicator.broadcast(folder_to_resume(run.options).string(), 0);
    if (!root.empty()) bring_checkpoint_together(place, root, communicator);
  }
  const std::string folder = communicator.broadcast(round.is_first() ? prepare_run_folder(run, state, scalars) : "", 0);
  const std::optional<Checkpoint> found = folder.empty() ? std::nullopt : std::optional(read_checkpoint(folder));
  follow_first_rank(place, found ? *found : state.beginning(), communicator.rank());
  return found;
}

}  // namespace frostpipe
