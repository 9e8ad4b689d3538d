#pragma once
#include <optional>

#include "planner/search/candidate.h"
#include "planner/search/slice_tokens.h"

namespace frostpipe {

/// TeraPipe's cut (slice_tokens) of a mean sample for a phase that has its partition: time is that of the stage that
/// takes longest, with the larger micro-batches, and lengths are multiples of tokens / 16, rounded down, but of 1 at
/// least. The last slice is longer by what the longest sample has beyond that. Throws InvalidInput where a size was not
/// measured.
TokenSlices cut_for_slowest_stage(const Phase& phase, const PlanningProblem& problem, LayerCosts& costs);

/// The phase with these slices; none where they are open to no choice: the schedule has none or was not asked for (the
/// bound of a search of all schedules knows equal slices alone), their number was asked for, or the profile has not
/// measured them as far.
std::optional<Candidate> with_cut_slices(const Phase& phase, const PlanningProblem& problem, CandidateMaker& maker,
                                         LayerCosts& costs);

}  // namespace frostpipe
