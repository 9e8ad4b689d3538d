#pragma once
#include <string_view>

#include "plan/schedule.h"
#include "plan/summary.h"
#include "simulator/cost_model.h"

namespace frostpipe {

/// The simulation of a schedule whose stages all cost the same.
struct ScheduleSimulation {
  IterationSummary summary;           // of the first iteration; iteration_ns in the steady state
  double span_bubble_fraction = 0;    // idle share of longest_rank_span_ns, for the busiest rank
  double steady_bubble_fraction = 0;  // idle share of ranks x iteration_ns
  std::string_view engine;            // "fast path" or "event"
};

/// Simulates a schedule of compute actions only; its iterations may overlap. `weight_gradient_share` is the part of a
/// micro-batch's saved activations that stays from I until W.
ScheduleSimulation simulate_schedule(const Schedule& compute, const UniformCosts& costs, double weight_gradient_share);

}  // namespace frostpipe
