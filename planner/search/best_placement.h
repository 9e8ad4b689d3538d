#pragma once
#include "planner/search/best_phase.h"

namespace frostpipe {

/// Searches the first of placements_of that has a phase, and those of the others on which this phase would be fastest,
/// kMaxSearched in all. Returns the fastest phase found; lower_bound_ns and reason are those of its placement.
/// Placements on devices that were not measured are left out; if none has a phase, throws what the first of them
/// throws.
PhaseSearchResult search_placements(const PlanningProblem& problem, const PhaseSearch& search, LayerCosts& costs);

constexpr std::size_t kMaxSearched = 4;

}  // namespace frostpipe
