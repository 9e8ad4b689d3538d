#pragma once
#include "plan/plan.h"

namespace frostpipe {

/// A request to re-plan the rest of the run, after a freeze rule has decided or ranks were lost.
struct ReplanRequest {
  Phase current;
  int first_trainable_layer = 0;  // valid from `from_step`
  int from_step = 0;
  /// The median iteration of the current phase so far; 0 = unknown.
  Nanoseconds measured_iteration_ns = 0;
  /// The device of the cluster on which each rank runs.
  std::vector<int> logical_ranks;
  /// Whether ranks were lost, so that the current layout (in terms of the cluster's devices) cannot be kept.
  bool layout_is_lost = false;
  /// The freezes after `from_step` that the plan forecasts; none = unknown.
  std::optional<std::vector<FreezeEvent>> forecast;
};

}  // namespace frostpipe
