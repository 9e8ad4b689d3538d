#include "cli/program/usage_hints.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

#include "base/process/child_output.h"
#include "base/separated_values.h"
#include "base/spelling.h"
#include "cli/program/former_options.h"
#include "cli/shared/usage_error.h"

namespace frostpipe {
namespace {

constexpr std::chrono::seconds kHelpLimit{10};

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

/// Returns whether a help text lists the option: at the third character of a line, possibly behind a short option.
bool lists_option(const std::string& help, const std::string& option) {
  return std::ranges::any_of(lines_of(help), [&](std::string_view line) {
    if (!line.starts_with("  -")) return false;
    const std::string_view name = line.substr(2, line.find(' ', 2) - 2);
    return name == option || name.ends_with("," + option);
  });
}

/// Returns the command of the same name, in another group, that has the option; empty if there is none.
std::string command_with(const std::string& option, const CLI::App& parsed, const std::string& tool) {
  for (const std::string group : {"", "serving ", "nets "}) {
    const std::string command = fmt::format("frostpipe {}{}", group, parsed.get_name());
    if (command == name_of(parsed)) continue;
    std::vector<std::string> words{tool};
    if (!group.empty()) words.push_back(group.substr(0, group.size() - 1));
    words.insert(words.end(), {parsed.get_name(), "--help-all"});
    if (lists_option(output_of(words, {}, kHelpLimit).output, option)) return command;
  }
  return "";
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

std::string unexpected_arguments(const CLI::App& app) {
  const std::vector<std::string> arguments = app.remaining(/*recurse=*/true);
  if (arguments.empty()) return "";
  return fmt::format("The following argument{} not expected: {}", arguments.size() > 1 ? "s were" : " was",
                     fmt::join(arguments, " "));
}

std::string hint_for_missing(const CLI::App& app, const std::string& error) {
  if (error != "PLAN is required") return "";
  const std::string name = name_of_parsed(app), group = name.substr(0, name.rfind(' '));
  const std::string profiling = group == "frostpipe serving" ? "frostpipe" : group;  // it serves models of training
  return fmt::format("; '{} plan' makes it, from what '{} profile' has measured", group, profiling);
}

std::string hint_for_options(const CLI::App& app, const std::string& tool) {
  const CLI::App& parsed = parsed_command(app);
  for (const std::string& argument : app.remaining(/*recurse=*/true)) {
    if (!argument.starts_with("--")) continue;
    const std::string option = argument.substr(0, argument.find('='));
    const std::string name = name_of(parsed), command = name.substr(name.find(' ') + 1);
    if (const std::string successor = successor_of(command, option); !successor.empty()) return "; " + successor;
    if (const std::string other = command_with(option, parsed, tool); !other.empty())
      return fmt::format("; '{}' has {}", other, option);
    std::vector<std::string> known;
    for (const CLI::Option* own : parsed.get_options())
      known.insert(known.end(), own->get_lnames().begin(), own->get_lnames().end());
    return did_you_mean(option.substr(2), known, "--");
  }
  return "";
}

}  // namespace frostpipe
