#pragma once
#include <memory>
#include <string>

#include "cli/shared/progress.h"
#include "executor/execute.h"

namespace frostpipe {

/// What a rank shows while it trains: progress where it is asked to, which is on rank 0, and sentences.
class TrainDisplay {
 public:
  /// `name`: of the run.
  explicit TrainDisplay(std::string name);
  /// With progress and note; they must not outlive this object.
  TrainCallbacks callbacks();

 private:
  std::string name_;
  std::unique_ptr<ProgressDisplay> display_;  // on rank 0, which may be another process after a loss
};

}  // namespace frostpipe
