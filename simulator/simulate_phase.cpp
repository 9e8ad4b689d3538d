#include <algorithm>

#include "simulator/simulate.h"

namespace frostpipe {
namespace {

/// A flush schedule starts every iteration from the same state, namely after the meeting at the optimizer step: the
/// second iteration's period is the period. Positions that are frozen as a whole do not meet and run ahead, so that the
/// first iterations are a transient.
int iterations_until_steady(const Schedule& schedule) { return schedule.first_trainable_stage == 0 ? 2 : 5; }

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

SeveralIterations simulate_until_steady(const Phase& phase, int global_batch_size, std::string_view optimizer,
                                        std::string_view dtype, const Profile& profile, const Cluster& cluster) {
  SeveralIterations result{.schedule = schedule_of(phase), .trace = {}};
  const ProfileCostModel costs(phase, global_batch_size, optimizer, dtype, profile, cluster);
  const int iterations = iterations_until_steady(result.schedule);
  result.trace = simulate(result.schedule, phase.layout, costs, iterations);
  result.period_ns = end_of_step(result.trace, iterations - 1) - end_of_step(result.trace, iterations - 2);
  return result;
}

Nanoseconds period_ns(const Phase& phase, const CostModel& costs) {
  const Schedule schedule = schedule_of(phase);
  const int iterations = iterations_until_steady(schedule);
  const auto ends = simulate_timing(schedule, phase.layout, costs, iterations).iteration_end_ns;
  return ends[iterations - 1] - ends[iterations - 2];
}

}  // namespace

SimulatedPhase simulate_phase(const Phase& phase, int global_batch_size, std::string_view optimizer,
                              std::string_view dtype, const Profile& profile, const Cluster& cluster) {
  const auto several = simulate_until_steady(phase, global_batch_size, optimizer, dtype, profile, cluster);
  SimulatedPhase result;
  result.timeline = step_of(several.trace, 0);
  result.summary = summarize(result.timeline, 0, several.schedule);
  result.summary.iteration_ns = several.period_ns;
  return result;
}

Nanoseconds simulated_iteration_ns(const Phase& phase, int global_batch_size, std::string_view optimizer,
                                   std::string_view dtype, const Profile& profile, const Cluster& cluster) {
  return period_ns(phase, ProfileCostModel(phase, global_batch_size, optimizer, dtype, profile, cluster));
}

Nanoseconds iteration_ns_with(const Phase& phase, int global_batch_size, std::string_view optimizer, std::string_view dtype, const Profile& profile,
                              const Cluster& cluster, const WrapCosts& wrap) {
  const ProfileCostModel costs(phase, global_batch_size, optimizer, dtype, profile, cluster);
  return period_ns(phase, *wrap(costs));
}

}  // namespace frostpipe
