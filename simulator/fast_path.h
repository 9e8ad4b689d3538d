#pragma once
#include <optional>
#include <vector>

#include "plan/layout.h"
#include "plan/trace.h"
#include "simulator/cost_model.h"

namespace frostpipe {

/// The times at which the ranks worked, without a span for every action.
struct Timing {
  struct Rank {
    int rank = 0;
    Nanoseconds compute_begin_ns = 0, compute_end_ns = 0, busy_ns = 0;  // F B I W RECOMPUTE of the first iteration
    bool operator==(const Rank&) const = default;
  };
  std::vector<Rank> ranks;                    // ascending
  std::vector<Nanoseconds> iteration_end_ns;  // per iteration, the last end of its actions and messages
  bool operator==(const Timing&) const = default;
};

/// Implements simulate() in one pass over the lists. Every action stands after those of its own rank that it needs, so
/// only messages and collectives have to be waited for, and every link serves one rank's messages in the order of its
/// list. The result equals the event engine's to the nanosecond. The costs must not share links
/// (CostModel::shares_links).
///
/// Returns none if the fast path does not apply: if there is a prologue or an epilogue, if replicas are written out
/// (plan/reroute.h), if an action occurs twice or stands before one that it needs, or if ranks wait forever.
std::optional<Trace> simulate_on_fast_path(const Schedule& lowered, const ParallelLayout& layout,
                                           const CostModel& costs, int iterations);
std::optional<Timing> time_on_fast_path(const Schedule& lowered, const ParallelLayout& layout, const CostModel& costs,
                                        int iterations);

struct PipelineRankProgram;
/// Does the same with the schedule's pipeline_rank_programs. Returns none only if ranks wait forever.
std::optional<Timing> time_on_fast_path(const Schedule& lowered, const std::vector<PipelineRankProgram>& programs,
                                        const ParallelLayout& layout, const CostModel& costs, int iterations);

}  // namespace frostpipe
