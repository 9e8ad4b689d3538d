#pragma once
#include <vector>

#include "planner/search/plan_options.h"

namespace frostpipe {

/// A stretch of the run between two freezes.
struct RunWindow {
  int from_step = 0;
  int end_step = 0;
  int first_trainable_layer = 0;
};

/// Returns the windows from `from_step` to the end. The first one keeps the current frozen layers until the first of
/// `events`; events that do not freeze more are left out.
std::vector<RunWindow> windows_of(const Model& model, int from_step, int first_trainable_layer,
                                  const std::vector<FreezeEvent>& events, int num_steps);

/// Returns options.forecast, or the freezes of the cap with the parameters options.freeze if there is none.
std::vector<FreezeEvent> forecast_of(const Model& model, const PlanOptions& options);

/// Returns those freezes of forecast_of() that come after `step`.
std::vector<FreezeEvent> forecast_after(int step, const Model& model, const PlanOptions& options);

/// Appends those of a window's phases that begin before the window's end. Later ones are for a run in which nothing
/// more freezes.
void append_until(std::vector<Phase>& phases, const std::vector<Phase>& of_window, int end_step);

}  // namespace frostpipe
