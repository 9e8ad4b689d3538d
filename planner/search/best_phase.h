#pragma once
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "planner/search/layer_costs.h"
#include "planner/search/plan_options.h"

namespace frostpipe {

/// What best_phase looks among, and what is asked.
struct PhaseSearch {
  int pipeline_parallel_size = 1;
  int first_trainable_layer = 0;
  CacheUse cache;
  std::vector<Recompute> recompute = {std::nullopt};  // ways to try, the preferred first
  Nanoseconds give_up_above_ns = 0;                   // phases slower than this are of no interest; 0 = all are
  int proof_micro_batches =
      0;  // may be spent, summed over stages and simulations, on looking at every partition that may be faster
  bool bound_only = false;  // nothing is simulated: the best is the one with the least StageBound
};

struct PhaseSearchResult {
  std::optional<Phase> best;  // with its prediction unless bound_only
  Nanoseconds lower_bound_ns =
      0;  // no phase that is looked among has a shorter iteration, whatever its partition; give_up_above_ns at most
  std::string reason;       // where none fits of those that would be fast enough
  Bytes missing_bytes = 0;  // there, over all ranks, of the one that comes closest
};

/// Branch and bound over recompute x schedule x micro-batches: from the choice with the least bound_of_any_partition
/// on, each is given the partition with the least StageBound that fits and is simulated, until no bound of the others
/// is below the best time. The cuts of the best two are then shifted while that is faster. With proof_micro_batches
/// every partition of every choice whose StageBound is below the best time is simulated as well; if that is done within
/// them, the best is the best of all, and lower_bound_ns is its time. With several stages per rank each choice is given
/// CandidateMaker::looped_partition in place of the best, and lower_bound_ns is the bound of any partition, which is
/// farther away. Throws as best_phase does.
PhaseSearchResult search_phase(const PlanningProblem& problem, const PhaseSearch& search, LayerCosts& costs);

/// The least bound_of_any_partition of what search_phase looks among; kNoLimit where nothing was measured.
Nanoseconds least_bound_of_any_partition(const PlanningProblem& problem, const PhaseSearch& search, LayerCosts& costs);

/// Best phase with a given pipeline length (d = world / p, rounded down) and frozen prefix, from step 0, with its
/// prediction. Also used when re-planning during a run.
///
/// Candidates: the schedules of schedules_for, every m up to 32 and beyond that the least m for each micro-batch size,
/// as far as the schedule allows it, each with the partition that has the least StageBound among all that fit (exact,
/// stage_bound.h); those whose bound is above the best time are not simulated. The smallest simulated iteration time
/// wins, ties go to the schedule that is preferred and to fewer micro-batches; the cuts of the two fastest are then
/// shifted, one or several neighbouring ones by one layer, while the simulator finds that faster (not beyond 2,048
/// micro-batches over all stages). At least as fast as every candidate, but not exact over all partitions: on 1,000
/// random models of 4 and 6 layers on 1, 2 and 4 ranks the best of its lengths was the best of all layouts and
/// partitions every time. Candidates whose micro-batch size was not measured are left out; if that is every one, throws
/// what cost_of throws. Where nodes are unequally connected, search_placements says of which placements. The published
/// greedy partition is taken as it is. Infeasible names what the smallest micro-batches lack, or the empty stage that
/// the greedy partitioner left.
std::variant<Phase, Infeasible> best_phase(const PlanningProblem& problem, int pipeline_parallel_size,
                                           int first_trainable_layer, const CacheUse& cache = {});

}  // namespace frostpipe
