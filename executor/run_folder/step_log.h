#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "plan/summary.h"

namespace frostpipe {

/// The figures of a run's steps: FOLDER/steps.jsonl, a line for each step as it is done, so that neither memory nor
/// checkpoints grow with the steps.
///
/// Appends, so that the rank whose figures count may change: each process has a log of its own on the same folder. A
/// step that is done again comes again, and its last line counts. What a full disk or a kill leaves of a line is passed
/// over.
class StepLog {
 public:
  explicit StepLog(const std::filesystem::path& folder) : path_(folder / "steps.jsonl") {}

  /// False if it cannot be written.
  bool write(const std::vector<StepRecord>& steps);
  /// This process has written a step.
  bool has_written() const { return has_written_; }
  /// The steps before `num_steps`, in their order; those that nobody could write are missing, and all of them
  /// where something else than a regular file has the log's name.
  std::vector<StepRecord> read(int num_steps) const;
  /// Removes what an earlier run has left.
  void begin_anew() const;
  /// Begins with the steps of the run in that folder, if it has such a log.
  void begin_with(const std::filesystem::path& other_folder) const;

 private:
  std::filesystem::path path_;
  bool line_may_be_torn_ = true;  // the last one of the file, by whoever wrote it
  bool has_written_ = false;
};

}  // namespace frostpipe
