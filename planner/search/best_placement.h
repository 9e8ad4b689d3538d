#pragma once
#include "planner/search/best_phase.h"

namespace frostpipe {

/// The fastest phase of those placements_of the cluster in which the first one's best phase would be fastest,
/// kMostSearched of them; lower_bound_ns and reason are those of its placement.
PhaseSearchResult search_placements(const PlanningProblem& problem, const PhaseSearch& search, LayerCosts& costs);

constexpr std::size_t kMostSearched = 4;

}  // namespace frostpipe
