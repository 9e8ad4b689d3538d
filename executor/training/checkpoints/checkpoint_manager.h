#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/checkpoint/checkpoint_writer.h"
#include "executor/communication/communicator.h"
#include "executor/execute.h"
#include "executor/training/checkpoints/checkpoint_folder.h"
#include "executor/training/checkpoints/checkpoint_layers.h"
#include "executor/training/policy/checkpoint_schedule.h"

namespace frostpipe {

/// Decides when checkpoints are due and passes them to the writer, for one rendezvous round of the job. All ranks must
/// call each function at the same point, unless its comment says otherwise. In a rehearsal, checkpoints take no virtual
/// time.
class CheckpointManager {
 public:
  /// `folder` has the checkpoints and `round` is the round's number. `note` gets sentences for the user, on any rank.
  /// `before` is the manager of the previous round after give_up(), or null. If a slow disk still delays its writes, no
  /// rank waits for them; their files are removed once no rank writes for earlier rounds any more.
  CheckpointManager(const CheckpointPolicy& policy, CheckpointFolder folder, int round, Communicator& communicator,
                    std::function<void(const std::string&)> note, std::unique_ptr<CheckpointManager> before = nullptr);

  /// Returns whether a checkpoint must be written before step `step`. Ranks wait for each other only before the steps
  /// that CheckpointSchedule names.
  bool is_due(int step);
  /// Starts to write a checkpoint in the background; no other one may be in progress. The `snapshot` of the first rank
  /// of each folder is written, with the list of files. `collect` is called once.
  void write(const Checkpoint& snapshot, const CollectLayers& collect);
  /// Does what write() does, but first waits for the previous checkpoint, and keeps the new one until release().
  void write_and_hold(const Checkpoint& snapshot, const CollectLayers& collect);
  void release() { writer_->hold(std::nullopt); }
  /// Keeps a checkpoint of an earlier round until release().
  void hold(int step) { writer_->hold(step); }
  /// Waits for the checkpoint that is being written, and for those of earlier rounds. Removes what is left of abandoned
  /// checkpoints, and calls report().
  void finish();
  /// Abandons an incomplete checkpoint without waiting.
  void give_up() { writer_->give_up("a new rendezvous round begins"); }
  /// Called when the run continues from another snapshot: weights of frozen layers may have changed, and the step of
  /// the snapshot counts as the first one.
  void start_over();
  /// Passes this rank's note on a failed checkpoint to `note`. Any rank may call this alone.
  void report();

  /// Called before the run goes back to the checkpoint of that step. If hosts have shares of it, copies them between
  /// the hosts. Returns why it cannot be restored, the same on all ranks; "" if every byte is as it was written.
  std::string defect_of(int step) const;
  /// Called when the run has gone back to `step`: removes later checkpoints.
  void remove_after(int step) const;
  /// Called when the run continues from the checkpoint of that step, which must be in every folder. It is kept until
  /// all folders have a newer one; later ones are removed.
  void set_completed(int step);

  /// Returns the path of a step's checkpoint. Any rank may call this alone.
  std::filesystem::path path_of(int step) const { return checkpoint_path(folder_.root, step); }

 private:
  /// Returns why this rank cannot restore the checkpoint of that step; "" if it can.
  std::string own_defect_of(int step) const;
  bool still_writes_for_earlier_rounds() const;
  void forget_earlier_rounds();
  void learn_what_is_complete();

  CheckpointFolder folder_;
  int round_;
  Communicator& communicator_;
  std::function<void(const std::string&)> note_;
  CheckpointSchedule schedule_;
  std::unique_ptr<CheckpointWriter> writer_;
  std::vector<std::unique_ptr<CheckpointWriter>> earlier_writers_;  // after give_up()
  bool is_clean_;                                                   // files of earlier rounds have been removed
  int num_written_ = 0;
};

}  // namespace frostpipe
