#pragma once
#include <functional>
#include <string>

#include "base/process/process_limits.h"
#include "executor/elastic/membership.h"

namespace frostpipe {

/// A command that several processes carry out together.
struct RankedCommand {
  int num_ranks = 1;
  int num_spares = 0;  // LaunchOptions
  int max_restarts = 0;
  bool ends_with_checkpoint = false;
  std::string interface;  // RankEnvironment, of ranks that somebody else has launched
  ProcessNeeds needs;     // of a rank; looked at before any is started
  /// The work of one process.
  std::function<void(Membership& membership)> work;
  /// Prints the result from the files that the ranks have written.
  std::function<void()> print_result;
};

/// In a process that is a rank already (our launcher's, or that of torchrun, srun or mpirun): does the work. Otherwise
/// starts this very command line once per local rank and waits for them. The result is printed once: by the launcher,
/// or by rank 0 when somebody else launched. Returns the exit code.
int run_on_ranks(const RankedCommand& command);

}  // namespace frostpipe
