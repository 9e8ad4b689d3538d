#include "plan/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "base/parse_json.h"
#include "base/statistics.h"
#include "plan/memory.h"
#include "plan/summary_json.h"

namespace frostpipe {

namespace {

/// The smallest interval that contains all added spans.
struct Extent {
  Nanoseconds begin_ns = std::numeric_limits<Nanoseconds>::max();
  Nanoseconds end_ns = std::numeric_limits<Nanoseconds>::min();
  void add(const Span& span) {
    begin_ns = std::min(begin_ns, span.begin_ns);
    end_ns = std::max(end_ns, span.end_ns);
  }
  Nanoseconds length_ns() const { return end_ns - begin_ns; }
};

/// Returns the mean distance between the ends of successive steps; none for a trace of one step.
std::optional<Nanoseconds> period_of(const Trace& trace) {
  std::map<int, Extent> steps;
  for (const auto& span : trace.spans) steps[span.step].add(span);
  if (steps.size() < 2) return std::nullopt;
  const auto& [first_step, first] = *steps.begin();
  const auto& [last_step, last] = *steps.rbegin();
  return (last.end_ns - first.end_ns) / (last_step - first_step);
}

}  // namespace

int num_stages(const PhaseSummary& phase) {
  const auto ranges = std::ranges::count(phase.partition, '[');
  return ranges > 0 ? static_cast<int>(ranges) : phase.stages;
}

IterationSummary summarize(const Trace& trace, int step, const Schedule& schedule) {
  IterationSummary summary;
  summary.busy_ns.assign(trace.num_ranks, 0);
  Extent whole;
  std::map<int, std::optional<Extent>> compute_of_rank;  // ranks that take part
  for (const auto& span : trace.spans) {
    if (span.step != step) continue;
    whole.add(span);
    auto& compute = compute_of_rank[span.rank];
    if (!is_compute(span.action.kind)) continue;
    summary.busy_ns.at(span.rank) += span.end_ns - span.begin_ns;
    if (!compute) compute.emplace();
    compute->add(span);
  }
  if (compute_of_rank.empty()) throw InvalidInput(fmt::format("trace: has no spans of step {}", step));

  summary.makespan_ns = whole.length_ns();
  summary.iteration_ns = period_of(trace).value_or(summary.makespan_ns);
  for (const auto& [rank, compute] : compute_of_rank)
    if (compute) summary.longest_rank_span_ns = std::max(summary.longest_rank_span_ns, compute->length_ns());
  const auto ideal =
      static_cast<double>(std::accumulate(summary.busy_ns.begin(), summary.busy_ns.end(), Nanoseconds{0}));
  const double total = static_cast<double>(compute_of_rank.size()) * static_cast<double>(summary.makespan_ns);
  if (ideal > 0) summary.bubble_overhead = (total - ideal) / ideal;
  if (total > 0) summary.bubble_fraction = (total - ideal) / total;
  summary.peak_in_flight = peak_in_flight(schedule);
  return summary;
}

void measure(PhaseSummary& phase, std::span<const StepRecord> steps) {
  FROSTPIPE_CHECK(!steps.empty(), "a phase is measured by its steps");
  std::vector<Nanoseconds> times;
  std::vector<int> tokens;
  double samples = 0;
  for (const StepRecord& step : steps) {
    times.push_back(step.iteration_ns);
    tokens.push_back(step.tokens);
    samples += step.samples;
  }
  phase.tokens = quantile(tokens, 0.5);
  phase.measured_iteration_ns = quantile(times, 0.5);
  phase.measured_iteration_low_ns = quantile(times, 0.1);
  phase.measured_iteration_high_ns = quantile(times, 0.9);
  const auto total = static_cast<double>(std::accumulate(times.begin(), times.end(), Nanoseconds{0}));
  phase.samples_per_second = total > 0 ? samples * 1e9 / total : 0;
}

std::string to_json_line(const StepRecord& step) { return json::write(step).dump(); }

std::optional<StepRecord> step_from_json_line(std::string_view line) {
  try {
    StepRecord step;
    json::read(parse_json<json::Json>(line, "step"), json::Place("step"), step);
    return step;
  } catch (const InvalidInput&) {
    return std::nullopt;
  }
}

bool freezes(const RunSummary& run) {
  return std::any_of(run.phases.begin(), run.phases.end(),
                     [](const PhaseSummary& phase) { return phase.first_trainable_layer > 0; });
}

std::string to_json(const RunSummary& run) { return json::write_envelope("frostpipe.run", run, kRunVersion); }

RunSummary run_from_json(std::string_view json, std::string_view source) {
  return json::read_envelope<RunSummary>(json, source, "frostpipe.run", kRunVersion);
}

}  // namespace frostpipe
