#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "planner/search/best_phase.h"
#include "planner/search/candidate.h"

namespace frostpipe {

/// One choice of search_phase. On equal bounds they are ordered by preference.
struct Choice {
  Nanoseconds bound_ns = 0;                 // holds for any partition
  std::size_t recompute = 0, schedule = 0;  // indices into the search's modes and the schedules
  int num_micro_batches = 1;
  auto operator<=>(const Choice&) const = default;
};

/// Returns the number of micro-batches that a simulation of the phase runs, summed over its stages. Only one replica is
/// simulated if all micro-batches have the same size.
int simulated_micro_batches(const Phase& phase, const PlanOptions& options);

/// The choices of a search, and the first reasons why others are left out.
struct Choices {
  std::vector<Choice> of_least_bound_first;   // those whose sizes were measured and whose schedules allow them
  std::optional<InvalidInput> not_measured;   // the first size that was not measured
  std::optional<InvalidInput> not_scheduled;  // the first shape that a schedule does not allow
};
Choices choices_of(const PlanningProblem& problem, const PhaseSearch& search,
                   const std::vector<PlannedSchedule>& schedules, const CandidateMaker& maker, LayerCosts& costs);

}  // namespace frostpipe
