#pragma once
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/checkpoint/checkpoint_writer.h"
#include "executor/communication/communicator.h"
#include "executor/execute.h"
#include "executor/runtime/rank_session.h"

namespace frostpipe {

/// Decides when checkpoints are due and hands them to the writer, for one forming of the job. All ranks call each
/// function at the same point.
class CheckpointKeeper {
 public:
  /// `forming`: its number. `note` gets sentences for people, on any rank. `before`: the keeper of the forming before,
  /// given up, or null. A slow disk may still hold up what it writes: nobody waits for that, and what is left of it is
  /// removed once no rank writes any more.
  CheckpointKeeper(const CheckpointPolicy& policy, const std::filesystem::path& root, int forming,
                   Communicator& communicator, std::function<void(const std::string&)> note,
                   std::unique_ptr<CheckpointKeeper> before = nullptr);

  /// Before step `step`: whether a checkpoint is to be written of the steps so far. Ranks wait for each other only at
  /// the steps where it may be, at most every few seconds.
  bool is_due(int step);
  /// Writes one, in the background. `checkpoint`: rank 0's counts; its files are filled in.
  void write(const Checkpoint& checkpoint, RankSession& session);
  /// Like write(), but waits for the one before; the checkpoint stays until release().
  void write_and_hold(const Checkpoint& checkpoint, RankSession& session);
  void release() { writer_->hold(std::nullopt); }
  /// Keeps one of an earlier forming until release().
  void hold(int step) { writer_->hold(step); }
  /// Waits for what is being written.
  void finish();
  /// What is not whole yet stays undone; nobody waits for it.
  void give_up() { writer_->give_up("the job forms anew"); }
  /// Weights of frozen layers may have changed.
  void forget() { writer_->forget(); }
  /// Says what the writer has to say.
  void report();

 private:
  using Clock = std::chrono::steady_clock;

  bool still_writes_for_earlier_formings() const;
  void forget_earlier_formings();

  CheckpointPolicy policy_;
  std::filesystem::path root_;
  int forming_;
  Communicator& communicator_;
  std::function<void(const std::string&)> note_;
  std::unique_ptr<CheckpointWriter> writer_;
  std::vector<std::unique_ptr<CheckpointWriter>> earlier_writers_;  // given up
  bool is_clean_;                                                   // of what they have left
  int num_written_ = 0;
  int next_question_ = 0;  // step
  std::optional<int> first_step_;
  Clock::time_point last_written_ = Clock::now(), last_question_ = Clock::now();
  int last_question_step_ = 0;
  bool postponed_ = false;
};

}  // namespace frostpipe
