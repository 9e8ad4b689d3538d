#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "executor/execute.h"
#include "executor/run_folder/folder_lock.h"

namespace CLI {
class App;
}

namespace frostpipe {

/// The options that `frostpipe train` and `frostpipe nets train` have in common.
struct CommonTrainOptions {
  std::string plan, data, model, output;
  std::string format;
  TrainOptions train;
  bool overwrite = false;
  int num_spares = 0, max_restarts = 3;
  double accuracy_tolerance = -1;  // --accuracy-guard, in percentage points; negative: not watched
  std::optional<FolderLock> lock;  // on the run folder, as long as this process lives
};

/// Adds the options, except --data, --model and --freeze, whose help differs between the commands. The values in
/// `options` are the defaults.
void add_common_train_options(CLI::App& command, CommonTrainOptions& options);

/// Throws UsageError if the test accuracy is to be watched and nothing is tested on. Notes --spares under another
/// launcher, which starts no spares.
void check_common_options(const CommonTrainOptions& options);

/// Sets the run folder and checks that it can be written. If this process is responsible for the job, locks the folder,
/// so that no other run uses it, and refuses a folder in which a run has ended. Throws InvalidInput.
void take_run_folder(CommonTrainOptions& options);

}  // namespace frostpipe
