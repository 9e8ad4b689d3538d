#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/process/process_limits.h"
#include "executor/elastic/membership.h"

namespace frostpipe {

/// A command that several processes carry out together.
struct RankedCommand {
  int num_ranks = 1;
  int num_spares = 0;  // this and the next two are as in LaunchOptions
  int max_restarts = 0;
  bool ends_with_checkpoint = false;
  std::string interface;  // of ranks that another launcher has started (RankEnvironment)
  ProcessNeeds needs;     // needs of one rank, which are checked before any rank is started
  /// The folders that the ranks write to. Once they have all ended, the unfinished files of those that were killed are
  /// removed from there.
  std::vector<std::filesystem::path> folders;
  /// Does the work of one process.
  std::function<void(Membership& membership)> work;
  /// Prints the result from the files that the ranks have written.
  std::function<void()> print_result;
};

/// Does the work if this process is a rank already, started by our launcher, torchrun, srun or mpirun. Otherwise starts
/// this command line once for each local rank and waits for the ranks. The result is printed once: by our launcher, or
/// by rank 0 under another one. Returns the exit code.
int run_on_ranks(const RankedCommand& command);

}  // namespace frostpipe
