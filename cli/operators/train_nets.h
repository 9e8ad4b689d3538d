#pragma once
#include <string>

#include "cli/training/common_train_options.h"

namespace frostpipe {

/// The options of `frostpipe nets train`.
struct NetTrainCommandOptions : CommonTrainOptions {
  int num_epochs = 1;
  std::string freeze = "plan";
};

void add_net_train_options(CLI::App& command, NetTrainCommandOptions& options);

/// Trains by an operator plan; returns the exit code.
int train_net_by_plan(NetTrainCommandOptions& options);

/// The options of `frostpipe nets rehearse`.
struct NetRehearsalOptions {
  std::string plan, output, format;
  bool overwrite = false;
};

void add_net_rehearsal_options(CLI::App& command, NetRehearsalOptions& options);

/// Runs a plan's iterations with real messages between processes and with the times of its operators on a virtual
/// clock. Returns the exit code.
int rehearse_net(const NetRehearsalOptions& options);

}  // namespace frostpipe
