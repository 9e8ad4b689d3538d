#pragma once
#include <string>

#include "cli/serving/serving_load.h"
#include "serving/plan/serving_plan.h"

namespace frostpipe {

struct SimulateServingOptions {
  ServingLoadOptions load;
  std::string data_plane;  // empty: not given
};

/// Those of the load, and --data-plane.
void add_simulate_serving_options(CLI::App& command, SimulateServingOptions& options);

/// "--rate", the first of the options that was given; empty if none was.
std::string first_given(const SimulateServingOptions& options);

/// How the plan serves the load, as a text or as JSON ("frostpipe.serving_simulation"). Where `timeline` names a file,
/// it gets a Chrome trace of every batch.
std::string simulate_serving_plan(const ServingPlan& plan, const SimulateServingOptions& options,
                                  const std::string& format, const std::string& timeline);

}  // namespace frostpipe
