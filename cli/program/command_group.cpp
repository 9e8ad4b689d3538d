#include "cli/program/command_group.h"

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "cli/shared/distinct_files.h"

namespace frostpipe {

int run_parsed(const std::vector<Command>& commands) {
  for (const Command& command : commands) {
    if (!command.parsed->parsed()) continue;
    require_distinct_files(*command.parsed);
    return command.run();
  }
  throw InternalError("a parsed command line names no command");
}

Command add_group(CLI::App& app, const std::string& name, const std::string& description,
                  std::initializer_list<Command (*)(CLI::App&)> members) {
  CLI::App* group = app.add_subcommand(name, description);
  group->require_subcommand(1);
  std::vector<Command> commands;
  for (const auto add_member : members) commands.push_back(add_member(*group));
  return {group, [commands] { return run_parsed(commands); }};
}

}  // namespace frostpipe
