#pragma once
#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace frostpipe {

/// The output of a program, and how it ended.
struct ChildOutput {
  int exit_code = 0;           // 128 + the signal that ended it; 127 if it could not be started
  bool timed_out = false;      // it was killed, since it had not ended within the limit
  std::string output, errors;  // its standard output and standard error
};

/// Runs a program, found by PATH unless its name has a slash, with `variables` added to this process's environment, and
/// waits for it. Its standard input is empty. A program that has not ended after `limit` is killed. Throws
/// RuntimeFailure if the system cannot start another process.
ChildOutput output_of(const std::vector<std::string>& command, const std::map<std::string, std::string>& variables,
                      std::chrono::seconds limit);

/// Runs a program, found in the same way, and waits for it. The file `log` gets the command line, then the program's
/// output and errors. The program gets SIGTERM when this process ends. Returns its exit code, 128 + the signal that
/// ended it, or 127 if it could not be started. Throws RuntimeFailure if the log cannot be written, or if the system
/// cannot start another process.
int run_logged(const std::vector<std::string>& command, const std::filesystem::path& log);

}  // namespace frostpipe
