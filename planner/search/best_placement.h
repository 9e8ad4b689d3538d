#pragma once
#include "planner/search/best_phase.h"

namespace frostpipe {

/// Searches the kMaxSearched placements of placements_of on which the first placement's best phase would be fastest,
/// and returns the fastest phase found; lower_bound_ns and reason are those of its placement.
PhaseSearchResult search_placements(const PlanningProblem& problem, const PhaseSearch& search, LayerCosts& costs);

constexpr std::size_t kMaxSearched = 4;

}  // namespace frostpipe
