#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "planner/search/best_phase.h"
#include "planner/search/candidate.h"

namespace frostpipe {

/// One thing for search_phase to look at, in the order of preference where times are equal.
struct Choice {
  Nanoseconds bound_ns = 0;                 // of any partition
  std::size_t recompute = 0, schedule = 0;  // indices into the search's ways and the schedules
  int num_micro_batches = 1;
  auto operator<=>(const Choice&) const = default;
};

/// How much a simulation of the phase has to do: micro-batches over all stages, of one replica where all are alike.
int simulated_micro_batches(const Phase& phase, const PlanOptions& options);

/// All of them, and why there are no more.
struct Choices {
  std::vector<Choice> of_least_bound_first;   // those whose sizes were measured and whose schedules have such a shape
  std::optional<InvalidInput> not_measured;   // the first that is left out for its size
  std::optional<InvalidInput> not_scheduled;  // the first that is left out for its shape
};
Choices choices_of(const PlanningProblem& problem, const PhaseSearch& search,
                   const std::vector<PlannedSchedule>& schedules, const CandidateMaker& maker, LayerCosts& costs);

}  // namespace frostpipe
