#pragma once
#include <functional>

#include "planner/search/candidate.h"

namespace frostpipe {

/// Shifts the cuts of a phase that has its prediction one layer at a time (neighbours) while that is faster by
/// `predicted` and still fits.
Phase with_shifted_cuts(Phase current, const PlanningProblem& problem, CandidateMaker& maker,
                        const std::function<Phase(const Candidate&)>& predicted);

}  // namespace frostpipe
