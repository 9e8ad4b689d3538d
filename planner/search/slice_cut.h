#pragma once
#include <optional>

#include "planner/search/candidate.h"
#include "planner/search/shifted_cuts.h"
#include "planner/search/slice_tokens.h"

namespace frostpipe {

/// Cuts a mean sample into token slices (slice_tokens) for a phase that has its partition. Slice times are those of the
/// slowest stage, with the larger micro-batches. Lengths are multiples of tokens / 16, rounded down but at least 1. The
/// last slice also has the tokens by which the longest sample exceeds the mean. Throws InvalidInput if a size was not
/// measured.
TokenSlices cut_for_slowest_stage(const Phase& phase, const PlanningProblem& problem, LayerCosts& costs);

/// Returns `phase`, which must have its prediction, with other token slices if that is faster: with those of
/// cut_for_slowest_stage, or with 1, 2 or 8 equal ones. The partition is sought again for each: its cuts are shifted
/// from those it has, those of the least StageBound and those of even work. Returns none if the search does not cut
/// slices (cuts_slices), the phase has none, or others are not faster, lack memory, or were not measured after so many
/// tokens.
std::optional<Phase> with_cut_slices(Phase phase, const PlanningProblem& problem, CandidateMaker& maker,
                                     LayerCosts& costs, const PredictBelow& predicted_below);

}  // namespace frostpipe
