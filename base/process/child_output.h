#pragma once
#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace frostpipe {

/// The output of a program, and how it ended.
struct ChildOutput {
  int exit_code = 0;       // 128 + the signal that ended it; 127 if it could not be started
  bool timed_out = false;  // it was killed, since it had not ended within the limit
  std::string output, errors;
};

/// Runs a program, found by PATH unless its name has a slash, with the environment and these variables, and waits for
/// it. A program that has not ended after `limit` is killed.
ChildOutput output_of(const std::vector<std::string>& command, const std::map<std::string, std::string>& variables,
                      std::chrono::seconds limit);

/// Runs a program, found in the same way, and waits for it. The command line, then its output and errors go to the file
/// `log`. It gets SIGTERM when this process ends. Returns its exit code, 128 + the signal that ended it, or 127 if it
/// could not be started.
int run_logged(const std::vector<std::string>& command, const std::filesystem::path& log);

}  // namespace frostpipe
