#pragma once
#include <optional>
#include <vector>

#include "plan/layout.h"
#include "plan/trace.h"
#include "simulator/cost_model.h"

namespace frostpipe {

/// When the ranks worked, without a span for every action.
struct Timing {
  struct Rank {
    int rank = 0;
    Nanoseconds compute_begin_ns = 0, compute_end_ns = 0, busy_ns = 0;  // F B I W RECOMPUTE of the first iteration
    bool operator==(const Rank&) const = default;
  };
  std::vector<Rank> ranks;                    // ascending
  std::vector<Nanoseconds> iteration_end_ns;  // per iteration: the last end of its actions, messages included
  bool operator==(const Timing&) const = default;
};

/// simulate() in one pass over the lists: what waits for something of its own rank stands after it in the list, so
/// that only messages and collectives have to be waited for, and every link serves one rank's messages in the order of
/// that rank's list. Equal to the event engine to the nanosecond.
///
/// Nothing where it does not apply: a prologue or an epilogue, an action that stands before what it needs, or ranks
/// that wait forever.
std::optional<Trace> simulate_on_fast_path(const Schedule& lowered, const ParallelLayout& layout,
                                           const CostModel& costs, int iterations);
std::optional<Timing> time_on_fast_path(const Schedule& lowered, const ParallelLayout& layout, const CostModel& costs,
                                        int iterations);

}  // namespace frostpipe
