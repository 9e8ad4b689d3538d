#pragma once
#include <optional>
#include <string>

#include "cli/plans/plan_files.h"
#include "cli/shared/common_options.h"
#include "cli/training/rehearsal.h"
#include "executor/execute.h"
#include "executor/run_folder/folder_lock.h"
#include "planner/loss_outlook.h"

namespace frostpipe {

/// What `frostpipe train` is told, and what it makes of that before it starts ranks.
struct TrainCommandOptions {
  std::string plan, data, model, output;
  std::string schedule_file;  // in place of the plan's schedules; empty = none
  SourceOverrides sources;
  std::optional<int> epochs;  // none = whatever the plan's steps are
  int ranks_per_node = 0;     // 0 = what the plan's world size asks for
  int num_ranks = 0;          // to start on this machine
  std::string freeze = "plan";
  FreezeOptions freeze_options;
  int num_spares = 0, max_restarts = 3;
  OnLoss on_loss = OnLoss::replan;
  std::string interface;
  double accuracy_tolerance = -1;  // in per cent; < 0 = not watched
  RehearsalOptions rehearsal;
  GivenSampleOptions samples;
  TrainOptions train;
  std::string format;
  bool overwrite = false;
  std::optional<FolderLock> lock;  // on the run folder, as long as this process lives
};

/// Every option of `train`, with its help.
void add_train_options(CLI::App& command, TrainCommandOptions& options);

/// --freeze and its options. Throws UsageError for a rule that is none.
FreezePolicy freeze_policy_of(const TrainCommandOptions& options);

/// What can be said of the options before any file is read: parses the freeze rule. Throws UsageError for a rule that
/// is none and for options that contradict each other or are missing.
void require_consistent(TrainCommandOptions& options);

/// Throws UsageError for options that would do nothing beside the others on the command line.
void require_used_options(const TrainCommandOptions& options, const CLI::App& command);

/// Locks the run folder: one run at a time, and none over another that has ended. Throws InvalidInput.
void take_run_folder(TrainCommandOptions& options);

}  // namespace frostpipe
