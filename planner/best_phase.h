#pragma once
#include <optional>
#include <string>
#include <vector>

#include "planner/layer_costs.h"
#include "planner/make_plan.h"

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
/// them, the best is the best of all, and lower_bound_ns is its time. Throws as best_phase does.
PhaseSearchResult search_phase(const Profile& profile, const Cluster& cluster, const PlanOptions& options,
                               const PhaseSearch& search, LayerCosts& costs);

/// The least bound_of_any_partition of what search_phase looks among; kNoLimit where nothing was measured.
Nanoseconds least_bound_of_any_partition(const Profile& profile, const Cluster& cluster, const PlanOptions& options,
                                         const PhaseSearch& search, LayerCosts& costs);

}  // namespace frostpipe
