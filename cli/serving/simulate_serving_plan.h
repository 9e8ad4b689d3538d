#pragma once
#include <string>

#include "cli/serving/serving_load.h"

namespace frostpipe {

/// The options of `frostpipe serving simulate`.
struct SimulateServingOptions {
  std::string plan, timeline, format;
  ServingLoadOptions load;
  std::string data_plane = "reserved";
};

void add_simulate_serving_options(CLI::App& command, SimulateServingOptions& options);

/// Returns how the plan serves the load, as a text or as JSON ("frostpipe.serving_simulation"). If
/// `options.timeline` names a file, writes a Chrome trace of every batch to it.
std::string simulate_serving_plan(const SimulateServingOptions& options);

}  // namespace frostpipe
