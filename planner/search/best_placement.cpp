#include "planner/search/best_placement.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "planner/search/candidate.h"
#include "planner/search/placement.h"
#include "simulator/simulate.h"

namespace frostpipe {

PhaseSearchResult search_placements(const PlanningProblem& problem, const PhaseSearch& search, LayerCosts& costs) {
  const auto& [profile, cluster, options] = problem;
  std::optional<InvalidInput> not_measured;  // on the first placement whose devices lack a measurement
  const auto searched = [&](const std::vector<int>& placement, Nanoseconds give_up_above_ns) {
    PlanOptions placed = options;
    placed.placement = placement;
    PhaseSearch limited = search;
    limited.give_up_above_ns = give_up_above_ns;
    try {
      return search_phase({profile, cluster, placed}, limited, costs);
    } catch (const InvalidInput& error) {
      if (!not_measured) not_measured = error;
      return PhaseSearchResult{};
    }
  };
  const auto time_of = [&](const Phase& phase) {
    try {
      return simulated_iteration_ns(phase, step_settings(options), profile, cluster);
    } catch (const InvalidInput&) {
      return kNoLimit;  // other micro-batches may have been measured there
    }
  };
  const auto placements = placements_of(cluster, options, options.tensor_parallel_size, search.pipeline_parallel_size);
  auto next = placements.begin();
  PhaseSearchResult best;
  do best = searched(*next++, search.give_up_above_ns);
  while (!best.best && next != placements.end());
  if (!best.best && not_measured) throw InvalidInput(*not_measured);
  std::vector<std::pair<Nanoseconds, std::vector<int>>> others;  // with the iteration time of best.best on each
  for (; next != placements.end(); ++next) {
    Phase phase = *best.best;
    phase.layout.placement = *next;
    others.emplace_back(time_of(phase), *next);
  }
  std::stable_sort(others.begin(), others.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  others.resize(std::min(others.size(), kMaxSearched - 1));
  for (const auto& [time, placement] : others) {
    PhaseSearchResult other = searched(placement, best.best->predicted.iteration_ns);
    if (other.best && other.best->predicted.iteration_ns < best.best->predicted.iteration_ns) best = std::move(other);
  }
  return best;
}

}  // namespace frostpipe
