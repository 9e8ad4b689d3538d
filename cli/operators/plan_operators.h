#pragma once
#include <string>

namespace CLI {
class App;
}

namespace frostpipe {

/// The options of `frostpipe nets plan`.
struct OperatorRequest {
  std::string method = "mtrain";
  std::string profile, cluster, output;
  int frozen_layers = 0;
  bool explain = false;
  std::string format;
};

void add_operator_plan_options(CLI::App& command, OperatorRequest& request);

/// Plans, writes the plan and prints it; returns the exit code.
int plan_operators(const OperatorRequest& request);

}  // namespace frostpipe
