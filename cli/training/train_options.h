#pragma once
#include <string>

#include "cli/plans/plan_files.h"
#include "cli/training/common_train_options.h"
#include "cli/training/rehearsal.h"
#include "planner/loss_outlook.h"

namespace frostpipe {

/// The options of `frostpipe train`.
struct TrainCommandOptions : CommonTrainOptions {
  std::string schedule_file;  // replaces the plan's schedules; empty = none
  SourceOverrides sources;
  std::string interface;
  std::string freeze = "plan";
  FreezeOptions freeze_options;
  OnLoss on_loss = OnLoss::replan;
  RehearsalOptions rehearsal;
};

void add_train_options(CLI::App& command, TrainCommandOptions& options);

/// Parses the freeze rule. Throws UsageError for an unknown rule, and for options that contradict each other or are
/// missing. Reads no file.
void require_consistent(TrainCommandOptions& options);

}  // namespace frostpipe
