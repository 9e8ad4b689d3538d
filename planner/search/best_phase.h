#pragma once
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "planner/search/plan_options.h"
#include "simulator/layer_costs.h"

namespace frostpipe {

/// The input of search_phase.
struct PhaseSearch {
  int pipeline_parallel_size = 1;
  int first_trainable_layer = 0;
  CacheUse cache;
  std::vector<Recompute> recompute = {std::nullopt};  // modes to try, the preferred first
  Nanoseconds give_up_above_ns = 0;                   // slower phases are not searched for; 0 = no limit
  /// Budget for looking at every partition that may be faster: micro-batches, summed over stages and simulations. 0 =
  /// only the search without this proof.
  int proof_micro_batches = 0;
  bool bound_only = false;  // nothing is simulated; the best is the phase with the least StageBound
};

struct PhaseSearchResult {
  std::optional<Phase> best;  // with its prediction unless bound_only
  /// No phase in the search has a shorter iteration, whatever its partition. The bound is at most give_up_above_ns. It
  /// does not hold for other token slices (with_cut_slices) than those that the search begins with.
  Nanoseconds lower_bound_ns = 0;
  std::string reason;       // why no phase fits; empty if one fits or is only too slow
  Bytes missing_bytes = 0;  // if memory is lacking: of the candidate closest to fitting, summed over its ranks
};

/// Searches by branch and bound over recompute x schedule x micro-batches. In the order of bound_of_any_partition, each
/// choice is given the partition with the least StageBound that fits and is simulated, until no remaining bound is
/// below the best time. The cuts of the best two are then shifted while that is faster. With proof_micro_batches every
/// partition of every choice whose StageBound is below the best time is simulated as well; if the budget suffices, the
/// best is optimal, and lower_bound_ns is its time. Choices with several stages per rank come last. They are given
/// CandidateMaker::looped_partition instead, and lower_bound_ns is the bound of any partition, which is less tight.
/// Throws what best_phase throws.
PhaseSearchResult search_phase(const PlanningProblem& problem, const PhaseSearch& search, LayerCosts& costs);

/// Returns the least bound_of_any_partition over the choices of search_phase; kNoLimit if there is no choice, since no
/// pipeline of this length is possible or nothing was measured.
Nanoseconds least_bound_of_any_partition(const PlanningProblem& problem, const PhaseSearch& search, LayerCosts& costs);

/// Returns the best phase with a given pipeline length (d = world / p, rounded down) and frozen prefix, from step 0,
/// with its prediction. It is also used to re-plan during a run.
///
/// Candidates: the schedules of schedules_for with every m up to 32, and beyond that the least m for each micro-batch
/// size (and the next multiple of p, if any schedule may be used), as far as the schedule allows it, each with the
/// partition that has the least StageBound among all that fit (exact, stage_bound.h). Candidates whose bound is above
/// the best time are not simulated. The shortest simulated iteration wins; ties go to the preferred schedule and to
/// fewer micro-batches. The cuts of the two fastest are then shifted, one or several neighbouring ones by one layer,
/// while the simulation gets faster (not beyond 2,048 micro-batches over all stages), and their token slices are cut
/// again (with_cut_slices). The result is at least as fast as every candidate, but not exact over all partitions: on
/// 1,000 random models of 4 and 6 layers on 1, 2 and 4 ranks the best over its lengths was the best of all layouts and
/// partitions every time. Candidates whose micro-batch size was not measured are left out; if all are, the function
/// throws what cost_of throws. If nodes are unequally connected or devices are unequal, search_placements chooses the
/// placement. The published greedy partition, or the one that options give, is not changed. Infeasible names what the
/// smallest micro-batches lack, or the stage that the greedy partitioner left empty.
std::variant<Phase, Infeasible> best_phase(const PlanningProblem& problem, int pipeline_parallel_size,
                                           int first_trainable_layer, const CacheUse& cache = {});

}  // namespace frostpipe
