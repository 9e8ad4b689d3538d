#pragma once
#include <string_view>

#include "plan/schedule.h"
#include "plan/summary.h"
#include "simulator/cost_model.h"

namespace frostpipe {

/// How a schedule runs where every stage costs the same.
struct ScheduleSimulation {
  IterationSummary summary;           // of the first iteration; iteration_ns in the steady state
  double span_bubble_fraction = 0;    // idle share of the longest rank's span, for the busiest rank
  double steady_bubble_fraction = 0;  // idle share of ranks x iteration_ns
  std::string_view engine;
};

/// Of compute actions only, in any schedule, iterations that overlap too. `weight_gradient_share`: what a micro-batch
/// keeps from I until W, of what it keeps from F on.
ScheduleSimulation simulate_schedule(const Schedule& compute, const UniformCosts& costs, double weight_gradient_share);

}  // namespace frostpipe
