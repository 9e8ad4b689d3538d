#pragma once
#include "plan/schedule.h"
#include "simulator/cost_model.h"

namespace frostpipe {

/// From I until W a micro-batch keeps this share of what it kept from F on: the inputs of the linear layers, 32 h of 34
/// h + 5 a s bytes per token, 0.37 to 0.43 in the models of Qi et al. 2023.
inline constexpr double kWeightGradientShare = 0.43;

/// A schedule of F, I and W on one stage per rank for these costs with at most `max_in_flight` micro-batches' memory on
/// any rank, as peak_in_flight counts it: the shortest longest rank span among list schedules under a grid of rules,
/// ZB-H1 and ZB-H2. A heuristic in the spirit of Qi et al. 2023: the more memory, the smaller the bubble, almost none
/// from 2 p on. Throws InvalidInput if the shape is impossible or max_in_flight < 1.
Schedule auto_zero_bubble(const ScheduleShape& shape, const UniformCosts& costs, int max_in_flight,
                          double weight_gradient_share = kWeightGradientShare);

}  // namespace frostpipe
