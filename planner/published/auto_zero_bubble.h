#pragma once
#include "plan/schedule.h"
#include "simulator/cost_model.h"

namespace frostpipe {

/// Fraction of a micro-batch's saved activations that remains from I until W: the inputs of the linear layers, 32 h of
/// 34 h + 5 a s bytes per token, 0.37 to 0.43 in the models of Qi et al. 2023.
inline constexpr double kWeightGradientShare = 0.43;

/// Returns a schedule of F, I and W with one stage per rank for these costs and memory for at most `max_in_flight`
/// micro-batches on any rank (counted by peak_in_flight): the one whose longest rank span is shortest, among
/// list schedules for a grid of rules, ZB-H1 and ZB-H2. This is a heuristic in the spirit of Qi et al. 2023: more
/// memory makes the bubble smaller, and with 2 p nearly zero. Throws InvalidInput if the shape is impossible or
/// max_in_flight < 1.
Schedule auto_zero_bubble(const ScheduleShape& shape, const UniformCosts& costs, int max_in_flight,
                          double weight_gradient_share = kWeightGradientShare);

}  // namespace frostpipe
