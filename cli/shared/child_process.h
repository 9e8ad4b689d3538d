#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace frostpipe {

/// Runs this tool again with other arguments and waits for it: its output and errors go to `log`, after the command
/// line itself. It ends when this process does. Returns its exit code, 128 + the signal that ended it, or 127 if it
/// could not be started.
int run_self(const std::vector<std::string>& arguments, const std::filesystem::path& log);

}  // namespace frostpipe
