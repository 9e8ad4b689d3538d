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
/// body `iterations` times, and its epilogue once. The result is deterministic.
///
/// Each rank's compute and each direction of each pair of ranks is a resource. A SEND never blocks its rank, unless its
/// cost asks for a rendezvous (TransferCost::holds_both). A link serves messages in the order of their issue, and so do
/// links that ranks share; a message arrives one latency after the link is done. A RECV blocks its rank until the
/// message is there. A collective starts when all its ranks have arrived.
///
/// The fast path is used if it applies, else (also if ranks share links) the event engine. Both give the same result to
/// the nanosecond.
///
/// The trace has a Span for every action, ranks ascending, each rank's in the order of its list; step = iteration. The
/// span of a SEND covers occupancy and latency, that of a RECV the wait (possibly none), and that of a collective also
/// the wait for the other ranks. Throws InvalidInput that names the waiting actions if the schedule cannot make
/// progress, and if `iterations` is below 1 or the schedule does not have one list per pipeline rank of the layout.
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
  /// The figures of that iteration, except that iteration_ns is that of the steady state: the distance between the ends
  /// of the last two iterations simulated.
  IterationSummary summary;
};
SimulatedPhase simulate_phase(const Phase& phase, const StepSettings& settings, const Profile& profile,
                              const Cluster& cluster);

/// Returns only summary.iteration_ns of simulate_phase, for searches.
Nanoseconds simulated_iteration_ns(const Phase& phase, const StepSettings& settings, const Profile& profile,
                                   const Cluster& cluster);

/// iteration_ns_with returns the same with other costs, which `wrap` derives from those of the profile.
using WrapCosts = std::function<std::unique_ptr<CostModel>(const CostModel& of_profile)>;
Nanoseconds iteration_ns_with(const Phase& phase, const StepSettings& settings, const Profile& profile,
                              const Cluster& cluster, const WrapCosts& wrap);

/// The assumed time to rebuild the process groups: an estimate, not a measurement.
constexpr Nanoseconds kRegroupNs = 50'000'000;

/// Returns the time of a change of layout: with `regroup` that of the process groups (the cluster's regroup_ns, or
/// kRegroupNs if it was not measured), plus the moves in their order. Moves into or out of one rank follow each other,
/// and so do moves over one shared link (see CostModel::shared_occupancies). Moved layers are written to new memory,
/// which occupies both ends longer.
Nanoseconds reconfiguration_ns(const Reconfiguration& reconfiguration, const Cluster& cluster);

/// Returns the predicted duration of the training loop: the sum over phases of steps x iteration time, plus the times
/// of the reconfigurations.
Nanoseconds predicted_run_ns(const TrainingPlan& plan);

}  // namespace frostpipe
