#pragma once
#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace frostpipe {

/// What a program wrote, and how it ended.
struct ChildOutput {
  int exit_code = 0;       // 128 + the signal that ended it, 127 if it could not be started
  bool timed_out = false;  // it was killed, not having ended within the limit
  std::string output, errors;
};

/// Runs a program, found by PATH unless its name has a slash, with these variables set beside the environment, and
/// waits. What has not ended after `limit` is killed.
ChildOutput output_of(const std::vector<std::string>& command, const std::map<std::string, std::string>& variables,
                      std::chrono::seconds limit);

}  // namespace frostpipe
