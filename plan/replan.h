#pragma once
#include "plan/plan.h"

namespace frostpipe {

/// A freeze rule has decided, and the rest of the run is to be re-planned.
struct ReplanRequest {
  Phase current;
  int first_trainable_layer = 0;  // from `from_step` on
  int from_step = 0;
  /// Median of the current phase so far; 0 = unknown.
  Nanoseconds measured_iteration_ns = 0;
  /// Devices of the cluster that the ranks run on, by rank.
  std::vector<int> logical_ranks;
  /// Ranks were lost: the current layout (in terms of the cluster's devices) cannot be kept; any other may be taken.
  bool layout_is_lost = false;
  /// What the plan foresees to freeze after `from_step`; none: nobody knows.
  std::optional<std::vector<FreezeEvent>> forecast;
};

}  // namespace frostpipe
