#pragma once
#include <optional>

#include "planner/search/candidate.h"
#include "planner/search/slice_tokens.h"

namespace frostpipe {

/// Cuts a mean sample into token slices (slice_tokens) for a phase that has its partition. Slice times are those of the
/// slowest stage, with the larger micro-batches. Lengths are multiples of tokens / 16, rounded down but at least 1. The
/// last slice is longer by what the longest sample has beyond the mean. Throws InvalidInput if a size was not measured.
TokenSlices cut_for_slowest_stage(const Phase& phase, const PlanningProblem& problem, LayerCosts& costs);

/// Returns the phase with these slices. Returns none if the slices cannot be chosen: the schedule has none or was not
/// asked for (the bound of a search over all schedules covers only equal slices), their number was asked for, or the
/// profile has not measured slices after so many tokens.
std::optional<Candidate> with_cut_slices(const Phase& phase, const PlanningProblem& problem, CandidateMaker& maker,
                                         LayerCosts& costs);

}  // namespace frostpipe
