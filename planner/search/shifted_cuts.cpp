#include "planner/search/shifted_cuts.h"

#include <utility>

#include "planner/search/pins.h"

namespace frostpipe {

Phase with_shifted_cuts(Phase current, const PlanningProblem& problem, CandidateMaker& maker,
                        const std::function<Phase(const Candidate&)>& predicted) {
  const StageBound bound = maker.bound_of(current);
  for (bool better = true; better;) {
    better = false;
    for (Partition& partition : neighbours(current.partition)) {
      if (!keeps_pins(problem.options.pins, partition) || bound.of(partition) >= current.predicted.iteration_ns)
        continue;
      Phase phase = current;
      phase.partition = std::move(partition);
      const Candidate shifted = maker.with_memory(std::move(phase));
      if (shifted.missing_bytes > 0) continue;
      Phase next = predicted(shifted);
      if (next.predicted.iteration_ns >= current.predicted.iteration_ns) continue;
      current = std::move(next);
      better = true;
    }
  }
  return current;
}

}  // namespace frostpipe
