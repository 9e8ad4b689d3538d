#pragma once
#include "plan/plan.h"

namespace frostpipe {

/// A freeze rule has decided, and the rest of the run is to be planned anew.
struct ReplanRequest {
  Phase current;
  int first_trainable_layer = 0;  // from `from_step` on
  int from_step = 0;
  /// Median of the current phase so far; 0 = unknown.
  Nanoseconds measured_iteration_ns = 0;
};

}  // namespace frostpipe
