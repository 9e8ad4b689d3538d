#include "cli/program/usage_hints.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/spelling.h"
#include "cli/program/former_options.h"
#include "cli/shared/usage_error.h"

namespace frostpipe {
namespace {

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known, std::string_view prefix = "") {
  const auto meant = nearest_spelling(word, known);
  return meant ? fmt::format("; did you mean '{}{}'?", prefix, *meant) : "";
}

/// Returns the parsed command, or the group if no member of it was parsed.
const CLI::App& parsed_command(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  return *command;
}

std::string name_of(const CLI::App& command) {
  return command.get_parent() == nullptr ? "frostpipe" : name_of(*command.get_parent()) + " " + command.get_name();
}

/// Appends the name of every command of this name, in any group, that has the option.
void find_commands_with(const std::string& option, const std::string& name, const CLI::App& group,
                        std::vector<std::string>& found) {
  for (const CLI::App* command : group.get_subcommands(nullptr)) {
    if (command->get_name() == name && command->get_option_no_throw(option) != nullptr)
      found.push_back(name_of(*command));
    find_commands_with(option, name, *command, found);
  }
}

}  // namespace

void require_known_command(const CLI::App& app, int argc, char** argv) {
  const CLI::App* group = &app;
  for (int i = 1; i < argc && argv[i][0] != '-'; ++i) {
    const std::vector<const CLI::App*> commands = group->get_subcommands(nullptr);
    if (commands.empty()) return;
    std::vector<std::string> names;
    for (const CLI::App* command : commands) names.push_back(command->get_name());
    const auto found = std::ranges::find(names, argv[i]);
    if (found == names.end()) {
      const std::string successor = successor_of(argv[i], "");
      throw UsageError(fmt::format("there is no command '{}'{}", argv[i],
                                   successor.empty() ? did_you_mean(argv[i], names) : "; " + successor));
    }
    group = commands[found - names.begin()];
  }
}

std::string name_of_parsed(const CLI::App& app) { return name_of(parsed_command(app)); }

std::string hint_for_options(const CLI::App& app) {
  const CLI::App& parsed = parsed_command(app);
  for (const std::string& argument : app.remaining(/*recurse=*/true)) {
    if (!argument.starts_with("--")) continue;
    const std::string option = argument.substr(0, argument.find('='));
    if (const std::string successor = successor_of(parsed.get_name(), option); !successor.empty())
      return "; " + successor;
    std::vector<std::string> others, known;
    find_commands_with(option, parsed.get_name(), app, others);
    if (!others.empty()) return fmt::format("; '{}' has {}", others.front(), option);
    for (const CLI::Option* own : parsed.get_options())
      known.insert(known.end(), own->get_lnames().begin(), own->get_lnames().end());
    return did_you_mean(option.substr(2), known, "--");
  }
  return "";
}

}  // namespace frostpipe
