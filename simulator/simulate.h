#pragma once
#include <functional>
#include <memory>
#include <string_view>

#include "plan/plan.h"
#include "plan/reconfiguration.h"
#include "plan/summary.h"
#include "plan/trace.h"
#include "simulator/cost_model.h"
#include "simulator/fast_path.h"

namespace frostpipe {

/// Interprets a lowered schedule for `iterations` repetitions of its body on every rank of `layout`.
///
/// Each rank runs its pipeline rank's prologue once, its body `iterations` times, its epilogue once. Deterministic.
/// Each rank's compute and each direction of each pair of ranks is a resource. A SEND never blocks its rank; its link
/// serves in issue order, and so do links that ranks share; the message arrives latency after the link is done. A RECV
/// holds its rank until the message is there. A collective starts when all its ranks have arrived.
///
/// On the fast path where it applies, else (also where ranks share links) by events; to the nanosecond the same.
///
/// Trace: a Span for every action, ranks ascending, each rank's in the order of its list; step = iteration. SEND spans
/// cover occupancy and latency, RECV spans the wait (maybe none), spans of a collective the wait for the others too.
/// Throws InvalidInput that names the waiting actions if the schedule cannot make progress.
Trace simulate(const Schedule& lowered, const ParallelLayout& layout, const CostModel& costs, int iterations);

/// The same by the event engine alone.
Trace simulate_by_events(const Schedule& lowered, const ParallelLayout& layout, const CostModel& costs, int iterations);

/// simulate() without a span for every action: for searches and large pipelines.
Timing simulate_timing(const Schedule& lowered, const ParallelLayout& layout, const CostModel& costs, int iterations);

/// Figures of the first iteration; iteration_ns is the distance of the last two iterations' ends, or the makespan where
/// there is one.
IterationSummary summarize(const Timing& timing, const Schedule& schedule);

/// "fast path" or "event".
std::string_view engine_of(const Schedule& lowered);

/// A phase by its profile, on the ranks of layout_of_lists: where coordinates are vacant, micro-batches are numbered
/// over all replicas.
struct SimulatedPhase {
  Trace timeline;  // one iteration alone: the first
  IterationSummary
      summary;  // of that, but iteration_ns from the steady state: distance of the last two iterations' ends
};
SimulatedPhase simulate_phase(const Phase& phase, const StepSettings& settings, const Profile& profile,
                              const Cluster& cluster);

/// summary.iteration_ns of simulate_phase alone, for searches.
Nanoseconds simulated_iteration_ns(const Phase& phase, const StepSettings& settings, const Profile& profile,
                                   const Cluster& cluster);

/// The same with costs that are made of the profile's.
using WrapCosts = std::function<std::unique_ptr<CostModel>(const CostModel& of_profile)>;
Nanoseconds iteration_ns_with(const Phase& phase, const StepSettings& settings, const Profile& profile,
                              const Cluster& cluster, const WrapCosts& wrap);

/// What rebuilding the process groups is taken to cost. An estimate, not a measurement.
constexpr Nanoseconds kRegroupNs = 50'000'000;

/// Price of a change of layout: groups to build (kRegroupNs when regroup) plus the moves in their order, those into or
/// out of one rank one after the other, and those over one shared link too, as CostModel::shared_occupancies says. What
/// moves comes into new memory, which keeps both ends longer.
Nanoseconds reconfiguration_ns(const Reconfiguration& reconfiguration, const Cluster& cluster);

/// Sum over phases of steps x iteration time plus transformations: the training loop's predicted length.
Nanoseconds predicted_run_ns(const TrainingPlan& plan);

}  // namespace frostpipe
