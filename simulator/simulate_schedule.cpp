#include "simulator/simulate_schedule.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "plan/memory.h"
#include "simulator/simulate.h"

namespace frostpipe {
namespace {

constexpr int kIterations = 4;  // the period is the distance between the last two

ParallelLayout layout_of(const Schedule& schedule) { return {.pipeline_parallel_size = num_pipeline_ranks(schedule)}; }

/// Returns the additional time of the last of several overlapping iterations.
Nanoseconds overlapping_period_ns(const Schedule& compute, const CostModel& costs) {
  const auto makespan = [&](int iterations) {
    const Schedule lowered = lower(unrolled(compute, iterations));
    return simulate_timing(lowered, layout_of(lowered), costs, 1).iteration_end_ns.front();
  };
  return makespan(kIterations) - makespan(kIterations - 1);
}

double idle_share(Nanoseconds busy, Nanoseconds all) {
  return all > 0 ? std::max(0.0, static_cast<double>(all - busy) / static_cast<double>(all)) : 0;
}

}  // namespace

ScheduleSimulation simulate_schedule(const Schedule& compute, const UniformCosts& uniform,
                                     double weight_gradient_share) {
  const UniformCostModel costs(uniform);
  const bool overlap = !compute.epilogue.empty();
  const Schedule lowered = overlap ? lower(unrolled(compute, 1)) : lower(compute);
  const int iterations = overlap ? 1 : kIterations;
  std::optional<Timing> timing = time_on_fast_path(lowered, layout_of(lowered), costs, iterations);
  const std::string_view engine = timing ? "fast path" : "event";
  if (!timing) timing = simulate_timing(lowered, layout_of(lowered), costs, iterations);
  ScheduleSimulation found{.summary = summarize(*timing, lowered), .engine = engine};
  IterationSummary& summary = found.summary;
  if (overlap) summary.iteration_ns = overlapping_period_ns(compute, costs);
  summary.peak_in_flight = peak_in_flight(compute, weight_gradient_share);
  const std::vector<Nanoseconds>& busy = summary.busy_ns;
  found.span_bubble_fraction = idle_share(*std::max_element(busy.begin(), busy.end()), summary.longest_rank_span_ns);
  found.steady_bubble_fraction = idle_share(std::accumulate(busy.begin(), busy.end(), Nanoseconds{0}),
                                            summary.iteration_ns * num_pipeline_ranks(lowered));
  return found;
}

}  // namespace frostpipe
