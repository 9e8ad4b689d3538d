#pragma once
#include <memory>
#include <string>

#include "cli/shared/progress.h"
#include "executor/execute.h"

namespace frostpipe {

/// Shows the progress of rank 0, and the notes of any rank, while it trains.
class TrainDisplay {
 public:
  /// `name` is the name of the run.
  explicit TrainDisplay(std::string name);
  /// Returns callbacks for progress and notes. They must not outlive this object.
  TrainCallbacks callbacks();

 private:
  std::string name_;
  std::unique_ptr<ProgressDisplay> display_;  // set on rank 0, which may be another process after a loss
};

}  // namespace frostpipe
