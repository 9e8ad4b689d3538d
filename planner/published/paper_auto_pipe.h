#pragma once
#include <span>
#include <variant>

#include "planner/search/plan_options.h"

namespace frostpipe {

/// Returns the length of the pipeline by AutoPipe as published (He et al. 2021, section 3.2 and the published code),
/// with parameters as a proxy for memory. The pipeline is halved while the largest stage of the greedy partition of the
/// trainable layers is no larger than the largest stage was at the start, with nothing frozen and `initial_length`
/// stages. The result may be 1.
///
/// `parameters_in_millions` has the numbers of parameters of the embedding, then of attention and MLP of each block,
/// then of whatever follows the blocks. The first `frozen_units` entries are left out: none, or the embedding together
/// with the frozen blocks. This is for comparison with the paper; RunPlanner compares simulated times instead. Throws
/// InvalidInput if frozen_units exceeds the list or initial_length < 1.
int paper_pipeline_length(std::span<const double> parameters_in_millions, int frozen_units, int initial_length);

/// Returns the next phase by that rule, even if it is not faster. Its pipeline has the length of paper_pipeline_length,
/// starting from one over all devices, but at most that of `current`; the rest is best_phase's. Returns Infeasible if
/// it does not fit.
std::variant<Phase, Infeasible> next_published_phase(const PlanningProblem& problem, const Phase& current,
                                                     int first_trainable_layer, int from_step);

}  // namespace frostpipe
