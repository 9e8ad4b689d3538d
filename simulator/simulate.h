#pragma once
#include <functional>
#include <memory>

#include "plan/plan.h"
#include "plan/reconfiguration.h"
#include "plan/summary.h"
#include "plan/trace.h"
#include "simulator/cost_model.h"
#include "simulator/fast_path.h"

namespace frostpipe {

/// Executes a lowered schedule on every rank of `layout`: each rank runs the prologue of its pipeline rank once, its
/// body `iterations` times, and its epilogue once. Deterministic.
///
/// Each rank's compute and each direction of each pair of ranks is a resource. A SEND never blocks its rank. A link
/// serves messages in the order of their issue, and so do links that ranks share; a message arrives latency after the
/// link is done. A RECV blocks its rank until the message is there. A collective starts when all its ranks have
/// arrived.
///
/// Uses the fast path if it applies, else (also if ranks share links) events. Both give the same result to the
/// nanosecond.
///
/// The trace has a Span for every action, ranks ascending, each rank's in the order of its list; step = iteration. SEND
/// spans cover occupancy and latency, RECV spans the wait (possibly none), spans of a collective also the wait for the
/// other ranks. Throws InvalidInput that names the waiting actions if the schedule cannot make progress.
Trace simulate(const Schedule& lowered, const ParallelLayout& layout, const CostModel& costs, int iterations);

/// Does the same as simulate(), always with the event engine.
Trace simulate_by_events(const Schedule& lowered, const ParallelLayout& layout, const CostModel& costs, int iterations);

/// Does the same as simulate() without a span for every action, for searches and large pipelines.
Timing simulate_timing(const Schedule& lowered, const ParallelLayout& layout, const CostModel& costs, int iterations);

/// Summarizes the first iteration. iteration_ns is the distance between the ends of the last two iterations, or the
/// makespan if there is only one.
IterationSummary summarize(const Timing& timing, const Schedule& schedule);

/// The simulation of a phase with its profile, on the ranks of layout_of_lists: with vacant coordinates micro-batches
/// are numbered over all replicas.
struct SimulatedPhase {
  Trace timeline;  // the first iteration alone
  /// Figures of that iteration, but iteration_ns is that of the steady state, between the ends of the last two.
  IterationSummary summary;
};
SimulatedPhase simulate_phase(const Phase& phase, const StepSettings& settings, const Profile& profile,
                              const Cluster& cluster);

/// Returns only summary.iteration_ns of simulate_phase, for searches.
Nanoseconds simulated_iteration_ns(const Phase& phase, const StepSettings& settings, const Profile& profile,
                                   const Cluster& cluster);

/// The same with costs derived from the profile's.
using WrapCosts = std::function<std::unique_ptr<CostModel>(const CostModel& of_profile)>;
Nanoseconds iteration_ns_with(const Phase& phase, const StepSettings& settings, const Profile& profile,
                              const Cluster& cluster, const WrapCosts& wrap);

/// Assumed time to rebuild the process groups. An estimate, not a measurement.
constexpr Nanoseconds kRegroupNs = 50'000'000;

/// Time of a change of layout: the process groups (kRegroupNs when regroup) plus the moves in their order. Moves into
/// or out of one rank follow each other, and so do moves over one shared link (see CostModel::shared_occupancies).
/// Moved layers are written to new memory, which occupies both ends longer.
Nanoseconds reconfiguration_ns(const Reconfiguration& reconfiguration, const Cluster& cluster);

/// Predicted duration of the training loop: the sum over phases of steps x iteration time, plus transformations.
Nanoseconds predicted_run_ns(const TrainingPlan& plan);

}  // namespace frostpipe
