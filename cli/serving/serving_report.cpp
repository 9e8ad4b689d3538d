#include "cli/serving/serving_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/statistics.h"
#include "cli/report/html_page.h"
#include "cli/report/html_table.h"
#include "cli/report/svg.h"
#include "cli/report/svg_chart.h"
#include "cli/report/svg_timeline.h"
#include "plan/trace.h"

namespace frostpipe {
namespace {

constexpr int kIntervals = 60;  // points of a run in a chart
constexpr int kMaxLanes = 24;   // lanes of a timeline
constexpr int kObjectivesInTimeline = 4;

double milliseconds(Nanoseconds duration_ns) { return static_cast<double>(duration_ns) / 1e6; }
double seconds(Nanoseconds duration_ns) { return static_cast<double>(duration_ns) / 1e9; }

/// Returns the latencies of the requests that arrived in each interval.
std::vector<std::vector<Nanoseconds>> latencies_by_interval(const ServingRun& run) {
  std::vector<std::vector<Nanoseconds>> intervals(kIntervals);
  for (const ServedRequest& request : run.requests) {
    if (request.drop || request.arrival_ns >= run.window_ns) continue;
    const auto interval = static_cast<std::size_t>(kIntervals * seconds(request.arrival_ns) / seconds(run.window_ns));
    intervals[std::min<std::size_t>(interval, kIntervals - 1)].push_back(request.end_ns - request.arrival_ns);
  }
  return intervals;
}

double middle_of(std::size_t interval, const ServingRun& run) {
  return seconds(run.window_ns) * (static_cast<double>(interval) + 0.5) / kIntervals;
}

std::vector<ChartPoint> latency_points(const ServingRun& run, double share) {
  std::vector<ChartPoint> points;
  const auto intervals = latencies_by_interval(run);
  for (std::size_t i = 0; i < intervals.size(); ++i)
    if (!intervals[i].empty()) points.push_back({middle_of(i, run), milliseconds(quantile(intervals[i], share))});
  return points;
}

std::vector<ChartPoint> goodput_points(const ServingRun& run) {
  std::vector<ChartPoint> points;
  const auto intervals = latencies_by_interval(run);
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    const auto in_time = std::ranges::count_if(intervals[i], [&](Nanoseconds one) { return one <= run.objective_ns; });
    points.push_back({middle_of(i, run), static_cast<double>(in_time) * kIntervals / seconds(run.window_ns)});
  }
  return points;
}

std::string charts(const ServedAndSimulated& model) {
  const auto& [served, simulated] = model;
  const double end = seconds(served.window_ns), objective = milliseconds(served.objective_ns);
  using enum ChartSeries::Shape;
  Chart latency{.title = "Latency", .x_label = "arrival [s]", .y_label = "ms", .series = {}, .y_low = 0};
  latency.series = {{"simulated, 99 %", "run-0", faint_line, latency_points(simulated, 0.99)},
                    {"99 %", "run-1", line, latency_points(served, 0.99)},
                    {"simulated, median", "run-0", line, latency_points(simulated, 0.5)},
                    {"median", "run-2", line, latency_points(served, 0.5)},
                    {"objective", "run-4", line, {{0, objective}, {end, objective}}}};
  Chart goodput{
      .title = "Answers in time", .x_label = "arrival [s]", .y_label = "per second", .series = {}, .y_low = 0};
  goodput.series = {{"simulated", "run-0", line, goodput_points(simulated)},
                    {"served", "run-2", line, goodput_points(served)}};
  return "<div class=\"charts\">" + to_svg(latency) + to_svg(goodput) + "</div>\n";
}

/// The lanes of the timeline: one for each virtual device, up to kMaxLanes.
struct Lanes {
  std::vector<std::string> names;
  std::map<std::tuple<int, int, int>, int> numbers;  // by pipeline, partition, device

  explicit Lanes(const ServingRun& run) {
    for (const PoolUse& pool : run.pools) {
      for (int device = 0; device < pool.num_virtual_devices && std::ssize(names) < kMaxLanes; ++device) {
        numbers[{pool.pipeline, pool.partition, device}] = static_cast<int>(names.size());
        names.push_back(fmt::format("{}.{} #{}", pool.pipeline, pool.partition, device));
      }
    }
  }
};

/// Returns the batches that begin in a stretch of the run. The picture shows each as a forward pass with its number of
/// requests.
Trace stretch_of(const ServingRun& run, const Lanes& lanes, Nanoseconds from_ns, Nanoseconds to_ns) {
  Trace trace{.num_ranks = static_cast<int>(lanes.names.size())};
  for (const ServingSpan& span : run.timeline) {
    const auto lane = lanes.numbers.find({span.pipeline, span.partition, span.virtual_device});
    if (span.kind != ServingSpan::Kind::compute || lane == lanes.numbers.end()) continue;
    if (span.begin_ns < from_ns || span.begin_ns >= to_ns) continue;
    trace.spans.push_back(
        {.rank = lane->second,
         .action = {.kind = ActionKind::forward, .stage = span.partition, .micro_batch = span.requests},
         .begin_ns = span.begin_ns,
         .end_ns = span.end_ns});
  }
  return trace;
}

/// Draws a stretch from the middle of the run.
std::string timeline(const ServedAndSimulated& model) {
  Nanoseconds known_ns = 0;
  for (const ServingSpan& span : model.served.timeline) known_ns = std::max(known_ns, span.end_ns);
  const Nanoseconds from_ns = known_ns / 2, to_ns = from_ns + kObjectivesInTimeline * model.served.objective_ns;
  const Lanes lanes(model.served);
  return timeline_html(stretch_of(model.simulated, lanes, from_ns, to_ns),
                       stretch_of(model.served, lanes, from_ns, to_ns), lanes.names);
}

std::string requests_table(const std::vector<ServedAndSimulated>& models) {
  HtmlTable table({{"model", "model", "l"},
                   {"", "", "l"},
                   {"requests", "requests", ""},
                   {"in time [%]", "in time [%]", "strong"},
                   {"in time/s", "in time/s", ""},
                   {"late", "late", ""},
                   {"dropped", "dropped", ""},
                   {"failed", "failed", ""},
                   {"median [ms]", "median [ms]", ""},
                   {"99 % [ms]", "99 % [ms]", ""},
                   {"objective [ms]", "objective [ms]", ""}});
  for (const auto& [served, simulated] : models) {
    for (const ServingRun* run : {&served, &simulated}) {
      const ServingSummary summary = summarize(*run);
      const std::int64_t failed = summary.drops[static_cast<std::size_t>(DropReason::failed)];
      table.add_row({escape_html(run->model), run == &served ? "served" : "simulated", std::to_string(summary.requests),
                     summary.requests > 0 ? fmt::format("{:.2f}", 100 * summary.attainment) : "-",
                     fmt::format("{:.1f}", summary.goodput_per_second), std::to_string(summary.late),
                     std::to_string(summary.requests - summary.in_time - summary.late - failed), std::to_string(failed),
                     fmt::format("{:.1f}", milliseconds(summary.median_latency_ns)),
                     fmt::format("{:.1f}", milliseconds(summary.p99_latency_ns)),
                     fmt::format("{:.1f}", milliseconds(run->objective_ns))});
    }
  }
  return "<div class=\"scroll\">" + table.to_string() + "</div>";
}

std::string headline(const std::vector<ServedAndSimulated>& models) {
  std::vector<std::string> parts;
  for (const auto& [served, simulated] : models)
    parts.push_back(fmt::format("{:.2f} % of {} requests to {} answered in time, {:.2f} % simulated",
                                100 * summarize(served).attainment, served.requests.size(), escape_html(served.model),
                                100 * summarize(simulated).attainment));
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace

std::string serving_report(const std::vector<ServedAndSimulated>& models, const std::string& source) {
  std::string html = "</header>\n";
  html += html_card("Requests", "Simulated: the same arrivals, by the times of the plan.", requests_table(models));
  for (const ServedAndSimulated& model : models) {
    html += html_card(escape_html(model.served.model) + ": over time",
                      "By the time at which requests came; latencies of those that were answered.", charts(model));
    html += html_card(escape_html(model.served.model) + ": virtual devices",
                      "A lane is PIPELINE.PARTITION #DEVICE, a number the requests of a batch. From the middle of the "
                      "recorded batches.",
                      timeline(model));
  }
  html += fmt::format("<footer>frostpipe {} · from {}</footer>\n", FROSTPIPE_VERSION, escape_html(source));
  return html_page("frostpipe serving report", "frostpipe serving report", headline(models), html);
}

}  // namespace frostpipe
