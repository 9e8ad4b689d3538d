#include <algorithm>

#include "simulator/iteration_timer.h"
#include "simulator/simulate.h"
#include "simulator/steady_state.h"

namespace frostpipe {
namespace {

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

Nanoseconds period_ns(const Phase& phase, const CostModel& costs) {
  const Schedule schedule = schedule_of(phase);
  return steady_period_ns(
      simulate_timing(schedule, layout_of_lists(phase.layout), costs, iterations_until_steady(schedule)), schedule);
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
  LayerCosts costs(profile, settings.dtype, phase.layout.sequence_parallel);
  return IterationTimer(settings, costs, cluster).iteration_ns(phase);
}

Nanoseconds iteration_ns_with(const Phase& phase, const StepSettings& settings, const Profile& profile,
                              const Cluster& cluster, const WrapCosts& wrap) {
  const ProfileCostModel costs(phase, settings, profile, cluster);
  return period_ns(phase, *wrap(costs));
}

}  // namespace frostpipe
