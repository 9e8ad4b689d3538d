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

/// Returns a hint about the first long option that the parsed command does not have: "; did you mean '--data'?", what
/// has taken its place, or a command of the same name that has it, which may be another program's: `tool`, as this
/// program was called, is asked for their help. Empty if there is none.
std::string hint_for_options(const CLI::App& app, const std::string& tool);

}  // namespace frostpipe
