#pragma once
#include <string>

#include "cli/training/train_options.h"

namespace frostpipe {

/// Whether the file is a plan of operators (operators/plan/operator_plan.h). Of what is no regular file it is not
/// asked.
bool is_operator_plan(const std::string& path);

/// `frostpipe train` of such a plan; the exit code. `command`: which options were given. Throws UsageError for those
/// that such plans do not have.
int train_operators(TrainCommandOptions& options, const CLI::App& command);

}  // namespace frostpipe
