#pragma once
#include <span>
#include <variant>

#include "planner/search/plan_options.h"

namespace frostpipe {

/// AutoPipe as published (He et al. 2021, section 3.2 and the published code): parameters stand for memory. The
/// pipeline is halved as long as the largest stage of the greedy partition of what still trains is no larger than the
/// largest stage was at the start, with nothing frozen and `initial_length` stages. May end at 1.
///
/// `parameters_in_millions`: embedding, (attention, MLP) per block, then whatever follows the blocks. Frozen units are
/// out of the list, the embedding together with the first block. For comparison with the paper: RunPlanner weighs
/// simulated times instead. Throws InvalidInput if frozen_blocks is not in the list or initial_length < 1.
int paper_pipeline_length(std::span<const double> parameters_in_millions, int frozen_blocks, int initial_length);

/// The next phase by that rule: the pipeline has the length that paper_pipeline_length gives by parameters, whether or
/// not that is faster or fits; its layers by best_phase.
std::variant<Phase, Infeasible> next_published_phase(const PlanningProblem& problem, const Phase& current,
                                                     int first_trainable_layer, int from_step);

}  // namespace frostpipe
