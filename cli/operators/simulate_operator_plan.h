#pragma once
#include <string>

namespace CLI {
class App;
}

namespace frostpipe {

/// The options of `frostpipe nets simulate`.
struct SimulateOperatorsOptions {
  std::string plan, timeline, format;
};

void add_simulate_operators_options(CLI::App& command, SimulateOperatorsOptions& options);

/// Returns an iteration of the plan, with its critical path, as a text or as JSON ("frostpipe.operator_simulation").
/// If `options.timeline` names a file, writes a Chrome trace of every operator and transfer to it.
std::string simulate_operator_plan(const SimulateOperatorsOptions& options);

}  // namespace frostpipe
