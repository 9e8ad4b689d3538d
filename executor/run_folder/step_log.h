#pragma once
#include <filesystem>
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

  /// Appends a line per step. Returns false if the log cannot be written.
  bool write(const std::vector<StepRecord>& steps);
  /// Returns whether a write() of this object has succeeded.
  bool has_written() const { return has_written_; }
  /// Returns the steps before `num_steps`, in order. Steps that could not be written are missing; all are missing if
  /// the log is not a regular file.
  std::vector<StepRecord> read(int num_steps) const;
  /// Removes the log of an earlier run.
  void begin_anew() const;
  /// Replaces the log by that of the run in `other_folder`, if it has one. Errors are ignored.
  void begin_with(const std::filesystem::path& other_folder) const;

 private:
  std::filesystem::path path_;
  bool line_may_be_torn_ = true;  // the file's last line may be incomplete, whichever process wrote it
  bool has_written_ = false;
};

}  // namespace frostpipe
