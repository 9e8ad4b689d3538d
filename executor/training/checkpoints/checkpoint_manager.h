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

/// Decides when checkpoints are due and hands them to the writer, for one rendezvous round of the job. All ranks call
/// each function at the same point, unless it says otherwise. In a rehearsal all of it takes no virtual time.
class CheckpointManager {
 public:
  /// `folder`: where checkpoints are. `round`: its number. `note` gets sentences for people, on any rank.
  /// `before`: the manager of the round before, given up, or null. A slow disk may still hold up what it writes: nobody
  /// waits for that, and what is left of it is removed once no rank writes any more.
  CheckpointManager(const CheckpointPolicy& policy, CheckpointFolder folder, int round, Communicator& communicator,
                    std::function<void(const std::string&)> note, std::unique_ptr<CheckpointManager> before = nullptr);

  /// Before step `step`: whether a checkpoint is to be written of the steps so far. Ranks wait for each other only at
  /// the steps where it may be, at most every few seconds.
  bool is_due(int step);
  /// Writes one, in the background. `snapshot`: rank 0's counts; its files are filled in. `collect` is called once.
  void write(const Checkpoint& snapshot, const CollectLayers& collect);
  /// Like write(), but waits for the one before; the checkpoint stays until release().
  void write_and_hold(const Checkpoint& snapshot, const CollectLayers& collect);
  void release() { writer_->hold(std::nullopt); }
  /// Keeps one of an earlier round until release().
  void hold(int step) { writer_->hold(step); }
  /// Waits for what is being written.
  void finish();
  /// What is not whole yet stays undone; nobody waits for it.
  void give_up() { writer_->give_up("a new rendezvous round begins"); }
  /// The run goes on from another snapshot: weights of frozen layers may have changed, and steps are counted from
  /// there.
  void start_over();
  /// Says what the writer has to say.
  void report();

  /// Before the run goes back to the checkpoint of that step: brings it together where hosts have parts of it. Why it
  /// cannot be restored, on all ranks alike; empty if every byte is as it was written.
  std::string defect_of(int step) const;
  /// The run has gone back to `step`: removes those after it.
  void remove_after(int step) const;
  /// The run goes on from the checkpoint of that step, one of the folder's, which stays until there is a newer one
  /// everywhere. Later ones go.
  void went_back_to(int step);

  /// Whoever wants to know asks alone.
  std::filesystem::path path_of(int step) const { return checkpoint_path(folder_.root, step); }

 private:
  /// Of what this rank sees.
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
  std::vector<std::unique_ptr<CheckpointWriter>> earlier_writers_;  // given up
  bool is_clean_;                                                   // of what they have left
  int num_written_ = 0;
};

}  // namespace frostpipe
