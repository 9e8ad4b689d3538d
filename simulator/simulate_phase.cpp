#include <algorithm>
#include <map>
#include <utility>

#include "simulator/simulate.h"

namespace frostpipe {
namespace {

/// A flush schedule starts every iteration from the same state, after the synchronization at the optimizer step, so the
/// second iteration has the steady period. Pipeline ranks that are wholly frozen do not synchronize and run ahead, so
/// the first iterations are a transient. The same holds where iterations overlap; the epilogue then counts as part of
/// the last one.
int iterations_until_steady(const Schedule& schedule) {
  return schedule.first_trainable_stage == 0 && schedule.epilogue.empty() ? 2 : 5;
}

/// Returns the last iteration that is not lengthened by the epilogue.
int last_whole_iteration(const Schedule& schedule, int iterations) {
  return schedule.epilogue.empty() ? iterations - 1 : iterations - 2;
}

Nanoseconds end_of_step(const Trace& trace, int step) {
  Nanoseconds end = 0;
  for (const Span& span : trace.spans) {
    if (span.step == step) end = std::max(end, span.end_ns);
  }
  return end;
}

struct SeveralIterations {
  Schedule schedule;
  Trace trace;
  Nanoseconds period_ns = 0;
};

SeveralIterations simulate_until_steady(const Phase& phase, const StepSettings& settings, const Profile& profile,
                                        const Cluster& cluster) {
  SeveralIterations result{.schedule = schedule_of(phase), .trace = {}};
  const ProfileCostModel costs(phase, settings, profile, cluster);
  const int iterations = iterations_until_steady(result.schedule);
  result.trace = simulate(result.schedule, layout_of_lists(phase.layout), costs, iterations);
  const int last = last_whole_iteration(result.schedule, iterations);
  result.period_ns = end_of_step(result.trace, last) - end_of_step(result.trace, last - 1);
  return result;
}

/// Simulates only replica 0 of replicas that are alike. The others behave in the same way, so a collective over
/// replicas becomes a fixed time, and one over all ranks synchronizes only replica 0's ranks.
class FirstReplica final : public CostModel {
 public:
  FirstReplica(const CostModel& all, const ParallelLayout& alone) : all_(all) {
    for (int pipeline_rank = 0; pipeline_rank < alone.pipeline_parallel_size; ++pipeline_rank)
      ranks_.push_back(rank_of(alone, pipeline_rank, 0));
    std::sort(ranks_.begin(), ranks_.end());
  }
  std::vector<Segment> segments(const Action& action, int pipeline_rank, int /*replica*/) const override {
    if (action.kind != ActionKind::reduce_gradient && action.kind != ActionKind::optimizer_step)
      return all_.segments(action, pipeline_rank, 0);
    const auto [known, is_new] =
        collectives_.try_emplace({action.kind, action.stage});  // a thousand ranks may be in it
    if (!is_new) return known->second;
    known->second = all_.segments(action, pipeline_rank, 0);
    for (Segment& segment : known->second) {
      std::erase_if(segment.collective_ranks,
                    [&](int rank) { return !std::binary_search(ranks_.begin(), ranks_.end(), rank); });
      if (segment.collective_ranks.size() < 2) segment.collective_ranks.clear();
    }
    return known->second;
  }
  Nanoseconds compute_ns(const Action& action, int pipeline_rank, int /*replica*/) const override {
    return all_.compute_ns(action, pipeline_rank, 0);
  }
  TransferCost transfer(const Action& send, int /*replica*/) const override { return all_.transfer(send, 0); }

 private:
  const CostModel& all_;
  std::vector<int> ranks_;
  mutable std::map<std::pair<ActionKind, int>, std::vector<Segment>> collectives_;  // by kind and stage
};

ParallelLayout first_replica_of(const ParallelLayout& layout) {
  ParallelLayout alone{.pipeline_parallel_size = layout.pipeline_parallel_size};
  alone.placement = pipeline_of(layout, 0);
  return alone;
}

Nanoseconds period_ns(const Phase& phase, const CostModel& costs) {
  const Schedule schedule = schedule_of(phase);
  const int iterations = iterations_until_steady(schedule);
  const auto ends = simulate_timing(schedule, layout_of_lists(phase.layout), costs, iterations).iteration_end_ns;
  const int last = last_whole_iteration(schedule, iterations);
  return ends[last] - ends[last - 1];
}

}  // namespace

SimulatedPhase simulate_phase(const Phase& phase, const StepSettings& settings, const Profile& profile,
                              const Cluster& cluster) {
  const auto several = simulate_until_steady(phase, settings, profile, cluster);
  SimulatedPhase result;
  result.timeline = step_of(several.trace, 0);
  result.summary = summarize(result.timeline, 0, several.schedule);
  result.summary.iteration_ns = several.period_ns;
  return result;
}

Nanoseconds simulated_iteration_ns(const Phase& phase, const StepSettings& settings, const Profile& profile,
                                   const Cluster& cluster) {
  const ProfileCostModel costs(phase, settings, profile, cluster);
  if (phase.layout.data_parallel_size == 1 || !costs.replicas_are_alike()) return period_ns(phase, costs);
  Phase alone = phase;
  alone.layout = first_replica_of(phase.layout);
  return period_ns(alone, FirstReplica(costs, alone.layout));
}

Nanoseconds iteration_ns_with(const Phase& phase, const StepSettings& settings, const Profile& profile,
                              const Cluster& cluster, const WrapCosts& wrap) {
  const ProfileCostModel costs(phase, settings, profile, cluster);
  return period_ns(phase, *wrap(costs));
}

}  // namespace frostpipe
