#include "simulator/simulate.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "plan/memory.h"
#include "simulator/event_engine.h"

namespace frostpipe {
namespace {

void require_run(const Schedule& lowered, const ParallelLayout& layout, int iterations) {
  if (iterations < 1) throw InvalidInput("iterations", "must be >= 1", std::to_string(iterations));
  if (layout.pipeline_parallel_size < 1 || layout.data_parallel_size < 1) {
    throw InvalidInput(
        "layout", "must have at least one pipeline rank and one replica",
        std::to_string(layout.pipeline_parallel_size) + " x " + std::to_string(layout.data_parallel_size));
  }
  if (num_pipeline_ranks(lowered) != layout.pipeline_parallel_size) {
    throw InvalidInput(
        "schedule " + lowered.name,
        "must have one list per pipeline rank of the layout, together " + std::to_string(layout.pipeline_parallel_size),
        std::to_string(num_pipeline_ranks(lowered)) + " lists");
  }
}

Timing timing_of(const Trace& trace, int iterations) {
  Timing timing;
  timing.iteration_end_ns.assign(iterations, 0);
  bool has_computed = false;  // in the rank's first step
  for (const Span& span : trace.spans) {
    if (timing.ranks.empty() || timing.ranks.back().rank != span.rank) {
      timing.ranks.push_back({.rank = span.rank});
      has_computed = false;
    }
    Timing::Rank& rank = timing.ranks.back();
    timing.iteration_end_ns[span.step] = std::max(timing.iteration_end_ns[span.step], span.end_ns);
    if (span.step > 0 || !is_compute(span.action.kind)) continue;
    if (!std::exchange(has_computed, true)) rank.compute_begin_ns = span.begin_ns;
    rank.compute_end_ns = span.end_ns;
    rank.busy_ns += span.end_ns - span.begin_ns;
  }
  return timing;
}

}  // namespace

Trace simulate_by_events(const Schedule& lowered, const ParallelLayout& layout, const CostModel& costs,
                         int iterations) {
  require_run(lowered, layout, iterations);
  return run_by_events(lowered, layout, costs, iterations);
}

Trace simulate(const Schedule& lowered, const ParallelLayout& layout, const CostModel& costs, int iterations) {
  require_run(lowered, layout, iterations);
  if (costs.shares_links()) return run_by_events(lowered, layout, costs, iterations);
  if (auto trace = simulate_on_fast_path(lowered, layout, costs, iterations)) return *std::move(trace);
  return run_by_events(lowered, layout, costs, iterations);
}

Timing simulate_timing(const Schedule& lowered, const ParallelLayout& layout, const CostModel& costs, int iterations) {
  require_run(lowered, layout, iterations);
  if (!costs.shares_links())
    if (auto timing = time_on_fast_path(lowered, layout, costs, iterations)) return *std::move(timing);
  return timing_of(run_by_events(lowered, layout, costs, iterations), iterations);
}

IterationSummary summarize(const Timing& timing, const Schedule& schedule) {
  const std::vector<Nanoseconds>& ends = timing.iteration_end_ns;
  IterationSummary summary;
  summary.makespan_ns = ends.front();
  summary.iteration_ns = ends.size() > 1 ? ends.back() - ends[ends.size() - 2] : summary.makespan_ns;
  summary.busy_ns.assign(timing.ranks.back().rank + 1, 0);
  Nanoseconds busy = 0;
  for (const Timing::Rank& rank : timing.ranks) {
    summary.busy_ns[rank.rank] = rank.busy_ns;
    busy += rank.busy_ns;
    summary.longest_rank_span_ns = std::max(summary.longest_rank_span_ns, rank.compute_end_ns - rank.compute_begin_ns);
  }
  const auto ideal = static_cast<double>(busy),
             total = static_cast<double>(timing.ranks.size()) * static_cast<double>(summary.makespan_ns);
  if (ideal > 0) summary.bubble_overhead = (total - ideal) / ideal;
  if (total > 0) summary.bubble_fraction = (total - ideal) / total;
  summary.peak_in_flight = peak_in_flight(schedule);
  return summary;
}

}  // namespace frostpipe
