#pragma once
#include <chrono>
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

}  // namespace frostpipe
