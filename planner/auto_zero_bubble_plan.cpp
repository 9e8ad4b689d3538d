#include "planner/auto_zero_bubble_plan.h"

#include <algorithm>
#include <set>

#include "plan/memory.h"
#include "plan/schedule_rows.h"
#include "plan/stages.h"
#include "planner/published/auto_zero_bubble.h"
#include "planner/search/candidate.h"
#include "simulator/simulate.h"

namespace frostpipe {
namespace {

/// Returns mean costs over the stages (of gradients, over those that train; of messages, those of forwards), for the
/// first micro-batch on the first replica.
UniformCosts mean_costs(const Phase& phase, const CostModel& costs) {
  const int stages = num_stages(phase), first = first_trainable_stage(phase);
  const auto mean = [&](int from, int to, const auto& cost_of) {
    Nanoseconds sum = 0;
    for (int stage = from; stage < to; ++stage) sum += cost_of(stage);
    return from < to ? sum / (to - from) : 0;
  };
  const auto compute = [&](ActionKind kind) {
    return [&costs, &phase, kind](int stage) {
      return costs.compute_ns({.kind = kind, .stage = stage, .micro_batch = 0}, pipeline_rank_of(phase, stage), 0);
    };
  };
  const auto message = [&](Nanoseconds TransferCost::*part) {
    return mean(0, stages - 1, [&](int stage) {
      return costs.transfer({.kind = ActionKind::send_forward, .stage = stage, .micro_batch = 0}, 0).*part;
    });
  };
  return {.forward_ns = mean(0, stages, compute(ActionKind::forward)),
          .input_gradient_ns = mean(first, stages, compute(ActionKind::input_gradient)),
          .weight_gradient_ns = mean(first, stages, compute(ActionKind::weight_gradient)),
          .latency_ns = message(&TransferCost::latency_ns),
          .occupancy_ns = message(&TransferCost::occupancy_ns)};
}

/// Returns the fraction of the activations kept until I that W needs, on the stage where it is largest: at most 1, and
/// kWeightGradientShare if no stage keeps anything for W.
double weight_gradient_share(const std::vector<RankMemory>& stages) {
  double share = 0;
  for (const RankMemory& stage : stages)
    if (stage.until_backward > 0)
      share = std::max(share, static_cast<double>(stage.until_weights) / static_cast<double>(stage.until_backward));
  return share > 0 ? std::min(1.0, share) : kWeightGradientShare;
}

Phase by_rows(Phase phase, const Schedule& compute) {
  const Nanoseconds transformation_ns = phase.predicted.transformation_ns;
  set_schedule_rows(phase, kAutoZeroBubble, rows_of(to_csv(compute)), kAutoZeroBubble);
  phase.predicted.transformation_ns = transformation_ns;
  return phase;
}

}  // namespace

Phase with_auto_zero_bubble(const Phase& phase, const PlanningProblem& problem) {
  const auto& [profile, cluster, options] = problem;
  const StepSettings settings = step_settings(options);
  const int p = phase.layout.pipeline_parallel_size;
  const ScheduleShape shape{.pipeline_parallel_size = p, .num_micro_batches = phase.num_micro_batches};
  const UniformCosts costs = mean_costs(phase, ProfileCostModel(phase, settings, profile, cluster));
  const double share = weight_gradient_share(memory_of_stages(phase, settings, profile, cluster));
  Phase best = by_rows(phase, zero_bubble_h1(shape));
  best.predicted = phase.predicted;
  for (const int max_in_flight : std::set<int>{p, p + p / 2, 2 * p}) {
    Phase next = by_rows(phase, auto_zero_bubble(shape, costs, max_in_flight, share));
    const std::vector<RankMemory> memory = memory_of(next, settings, profile, cluster);
    if (!options.ignore_memory_limit && !what_does_not_fit(next, memory, cluster).empty()) continue;
    next.predicted.iteration_ns = simulated_iteration_ns(next, settings, profile, cluster);
    next.predicted.peak_memory_bytes = peak_per_rank(next, memory, static_cast<int>(cluster.devices.size()));
    if (next.predicted.iteration_ns < best.predicted.iteration_ns) best = std::move(next);
  }
  return best;
}

}  // namespace frostpipe
