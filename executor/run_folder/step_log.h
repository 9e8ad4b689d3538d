#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "plan/summary.h"

namespace frostpipe {

/// The figures of a run's steps: FOLDER/steps.jsonl, one line per completed step, so that neither memory nor
/// checkpoints grow with the number of steps.
///
/// It appends, so that different ranks can write the figures: each process has a log of its own on the same folder. A
/// step that is repeated is written again, and its last line counts. Incomplete lines, left by a full disk or a kill,
/// are skipped.
class StepLog {
 public:
  explicit StepLog(const std::filesystem::path& folder) : path_(folder / "steps.jsonl") {}

  /// Returns false if the log cannot be written.
  bool write(const std::vector<StepRecord>& steps);
  /// True if this process has written a step.
  bool has_written() const { return has_written_; }
  /// Returns the steps before `num_steps`, in order. Steps that could not be written are missing; all are missing if
  /// the log is not a regular file.
  std::vector<StepRecord> read(int num_steps) const;
  /// Removes the log of an earlier run.
  void begin_anew() const;
  /// Copies the steps of the run in that folder, if it has such a log.
  void begin_with(const std::filesystem::path& other_folder) const;

 private:
  std::filesystem::path path_;
  bool line_may_be_torn_ = true;  // the file's last line may be incomplete, whichever process wrote it
  bool has_written_ = false;
};

}  // namespace frostpipe
