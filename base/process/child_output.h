#pragma once
#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace frostpipe {

/// The output of a program, and how it ended.
struct ChildOutput {
  int exit_code = 0;       // 128 + signal if a signal ended it, 127 if it could not be started
  bool timed_out = false;  // it was killed because it exceeded the limit
  std::string output, errors;
};

/// Runs a program and waits for it. It is found by PATH unless its name has a slash, and gets `variables` in addition
/// to the environment. A program that has not ended after `limit` is killed.
ChildOutput output_of(const std::vector<std::string>& command, const std::map<std::string, std::string>& variables,
                      std::chrono::seconds limit);

/// Runs a program, found likewise, and waits for it. The file `log` gets the command line, then the program's output
/// and errors. The program gets SIGTERM when this process ends. Returns its exit code, 128 + signal if a signal ended
/// it, or 127 if it could not be started.
int run_logged(const std::vector<std::string>& command, const std::filesystem::path& log);

}  // namespace frostpipe
