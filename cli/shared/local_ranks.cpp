#include "cli/shared/local_ranks.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "executor/elastic/launch.h"

namespace frostpipe {
namespace {

/// Returns the command line of this process, with the file that runs now as its program.
std::vector<std::string> own_command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> command;
  for (std::string argument; std::getline(file, argument, '\0');) command.push_back(argument);
  if (command.empty()) throw RuntimeFailure("/proc/self/cmdline: cannot be read, so that no ranks can be started");
  command[0] = std::filesystem::read_symlink("/proc/self/exe");
  return command;
}

}  // namespace

int run_on_ranks(const RankedCommand& command) {
  require_within(process_limits(), command.needs);
  if (const std::unique_ptr<Membership> membership = Membership::join(command.interface, command.max_restarts)) {
    command.work(*membership);
    if (answers_for_job()) command.print_result();
    return 0;
  }
  const int exit_code = launch_local_ranks({.command = own_command_line(),
                                            .num_ranks = command.num_ranks,
                                            .num_spares = command.num_spares,
                                            .max_restarts = command.max_restarts,
                                            .ends_with_checkpoint = command.ends_with_checkpoint});
  for (const std::filesystem::path& folder : command.folders) remove_unfinished_files(folder);
  if (exit_code == 0) command.print_result();
  return exit_code;
}

}  // namespace frostpipe
