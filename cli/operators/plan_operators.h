#pragma once
#include <string>
#include <vector>

#include "operators/plan/operator_plan.h"

namespace CLI {
class App;
}

namespace frostpipe {

/// Of options that only a plan of operators has.
inline constexpr const char* kOperatorsGroup = "Operators on unequal devices (--method mtrain)";

/// The files and options of a `frostpipe plan` that places operators.
struct OperatorRequest {
  OperatorMethod method = OperatorMethod::mtrain;
  std::string profile, cluster, output;
  int frozen_layers = 0;
  bool explain = false;
  std::string format;
};

/// --freeze
void add_operator_options(CLI::App& command, int& frozen_layers);

/// Plans, writes the plan and prints it; the exit code.
int plan_operators(const OperatorRequest& request);

}  // namespace frostpipe
