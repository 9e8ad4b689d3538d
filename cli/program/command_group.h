#pragma once
#include <initializer_list>
#include <string>
#include <vector>

#include "cli/program/program.h"

namespace frostpipe {

/// Runs the command that was parsed and returns its exit code.
int run_parsed(const std::vector<Command>& commands);

/// Adds a group of commands behind a name, such as "frostpipe serving plan".
Command add_group(CLI::App& app, const std::string& name, const std::string& description,
                  std::initializer_list<Command (*)(CLI::App&)> members);

}  // namespace frostpipe
