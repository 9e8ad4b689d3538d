#pragma once
#include <string>

namespace CLI {
class App;
}

namespace frostpipe {

/// Throws UsageError if the first words of the command line, up to an option, name no command.
void require_known_command(const CLI::App& app, int argc, char** argv);

/// Returns the name of the parsed command, such as "frostpipe serving run".
std::string name_of_parsed(const CLI::App& app);

/// Returns a sentence that names the arguments that the parsed command does not take, in the order of the command line
/// (the library's own message reverses them); "" if it takes all.
std::string unexpected_arguments(const CLI::App& app);

/// Returns where a missing PLAN comes from; "" if `error` is about something else.
std::string hint_for_missing(const CLI::App& app, const std::string& error);

/// Returns a hint about the first long option that the parsed command does not have: "; did you mean '--data'?", the
/// option's successor, or a command of the same name that has it. That command may belong to another program, so its
/// help is read by starting `tool`, the name by which this program was called. Returns an empty text if there is no
/// hint.
std::string hint_for_options(const CLI::App& app, const std::string& tool);

}  // namespace frostpipe
