#pragma once
#include <functional>
#include <string>
#include <vector>

#include "cli/serving/serve_options.h"
#include "serving/server/servable_model.h"

namespace frostpipe {

/// The type of open_servable_model(), which throws in a program without LibTorch.
using OpenModel = std::function<ServableModel(const std::vector<HeadFolder>&, const ServedModel&, DType)>;

/// Serves the plan until the generated load has ended, or until SIGINT or SIGTERM; SIGHUP reads the plan's file again.
/// Returns the results beside those that the simulator predicts for the same arrivals, as a text or as JSON
/// ("frostpipe.serving_run"). Throws InvalidInput and RuntimeFailure.
std::string serve_plan(const ServeOptions& options, const OpenModel& open_model);

}  // namespace frostpipe
