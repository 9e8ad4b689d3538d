#include "cli/report/report_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "cli/report/report_tables.h"
#include "cli/report/svg.h"
#include "cli/report/svg_chart.h"
#include "cli/report/svg_timeline.h"
#include "cli/shared/report_words.h"
#include "cli/shared/shape_text.h"
#include "cli/shared/table.h"
#include "profiles/device_type.h"

namespace frostpipe {
namespace {

/// Returns the x position of a step's start: its number, or the seconds of training before it.
using StepPosition = std::function<double(int step)>;

StepPosition by_steps() {
  return [](int step) { return static_cast<double>(step); };
}

/// Returns positions in seconds of training: the sum of the recorded iterations and of the changes of layout before the
/// step.
StepPosition by_time(const RunSummary& run) {
  std::map<int, double> length;  // seconds from the step's start to its end
  for (const StepRecord& record : run.steps) length[record.step] += static_cast<double>(record.iteration_ns) / 1e9;
  for (const PhaseSummary& phase : run.phases) {
    length[phase.from_step] += static_cast<double>(phase.transformation_ns) / 1e9;
  }
  std::map<int, double> start;
  double now = 0;
  for (const auto& [step, seconds] : length) {
    start[step] = now;
    now += seconds;
  }
  return [start, now](int step) {
    const auto found = start.lower_bound(step);
    return found == start.end() ? now : found->second;
  };
}

std::vector<ChartPoint> frozen_over_steps(const RunSummary& run, const StepPosition& x) {
  std::vector<ChartPoint> points;
  for (const PhaseSummary& phase : run.phases) {
    points.push_back({x(phase.from_step), static_cast<double>(phase.frozen_blocks)});
  }
  if (!points.empty()) points.push_back({x(run.num_steps), points.back().y});
  return points;
}

/// Returns samples per second as a moving median over nine steps, so that a single slow step does not show.
std::vector<ChartPoint> throughput(const RunSummary& run, const StepPosition& x) {
  std::vector<ChartPoint> points;
  const int n = static_cast<int>(run.steps.size());
  for (int i = 0; i < n; ++i) {
    std::vector<double> window;
    for (int j = std::max(0, i - 4); j <= std::min(n - 1, i + 4); ++j) {
      const StepRecord& record = run.steps[j];
      if (record.iteration_ns > 0) window.push_back(record.samples * 1e9 / static_cast<double>(record.iteration_ns));
    }
    if (window.empty()) continue;
    std::nth_element(window.begin(), window.begin() + static_cast<long>(window.size() / 2), window.end());
    points.push_back({x(run.steps[i].step), window[window.size() / 2]});
  }
  return points;
}

/// Returns the loss as an exponential moving average with weight 1/8 of the new value, corrected for the bias at its
/// start.
std::vector<ChartPoint> smooth_loss(const RunSummary& run, const StepPosition& x) {
  std::vector<ChartPoint> points;
  double average = 0, weight = 0;
  for (const StepRecord& record : run.steps) {
    if (!std::isfinite(record.loss)) continue;
    average += (record.loss - average) / 8;
    weight += (1 - weight) / 8;
    points.push_back({x(record.step), average / weight});
  }
  return points;
}

std::vector<ChartPoint> raw_loss(const RunSummary& run, const StepPosition& x) {
  std::vector<ChartPoint> points;
  for (const StepRecord& record : run.steps) {
    if (std::isfinite(record.loss)) points.push_back({x(record.step), record.loss});
  }
  return points;
}

std::vector<ChartPoint> accuracy(const RunSummary& run, const StepPosition& x) {
  std::vector<ChartPoint> points;
  for (const EvaluationRecord& record : run.evaluations) points.push_back({x(record.step), 100 * record.accuracy});
  return points;
}

std::string four_charts(const Comparison& comparison, bool in_time) {
  using Shape = ChartSeries::Shape;
  const std::string x_label = in_time ? "training time [s]" : "optimizer step";
  const std::string unit = frozen_unit(comparison.runs);
  Chart frozen{.title = "Frozen " + unit,
               .x_label = x_label,
               .y_label = unit == "blocks" ? "Transformer blocks" : unit,
               .series = {},
               .y_low = 0.0,
               .y_high = {}};
  Chart speed{
      .title = "Throughput", .x_label = x_label, .y_label = "samples/s", .series = {}, .y_low = 0.0, .y_high = {}};
  Chart loss{.title = "Training loss",
             .x_label = x_label,
             .y_label = "per sample, smoothed",
             .series = {},
             .y_low = 0.0,
             .y_high = {}};
  Chart score{.title = "Test " + test_metric_of(comparison.runs),
              .x_label = x_label,
              .y_label = "%",
              .series = {},
              .y_low = {},
              .y_high = {}};
  const std::size_t n = comparison.runs.size();
  for (std::size_t i = 0; i < n; ++i) {
    const RunSummary& run = comparison.runs[i];
    const StepPosition x = in_time ? by_time(run) : by_steps();
    const std::string colour = run_colour(i, n);
    frozen.series.push_back({run.name, colour, Shape::steps, frozen_over_steps(run, x)});
    speed.series.push_back({run.name, colour, Shape::line, throughput(run, x)});
    if (run.is_emulated) continue;
    loss.series.push_back({run.name, colour, Shape::faint_line, raw_loss(run, x)});
    loss.series.push_back({run.name, colour, Shape::line, smooth_loss(run, x)});
    score.series.push_back({run.name, colour, Shape::line_with_dots, accuracy(run, x)});
  }
  return to_svg(speed) + to_svg(frozen) + to_svg(score) + to_svg(loss);
}

std::string runs_legend(const Comparison& comparison) {
  std::string html = "<p class=\"legend\">";
  const std::size_t n = comparison.runs.size();
  for (std::size_t i = 0; i < n; ++i) html += fmt::format("<span>{}</span>", run_label(i, n, comparison.runs[i].name));
  return html + "</p>\n";
}

Bytes value_at(const std::vector<Bytes>& values, std::size_t index) {
  return index < values.size() ? values[index] : 0;
}

struct MemoryRow {
  std::string label, colour;
  Bytes predicted = 0, measured = 0, limit = 0;
};

/// Returns the memory limit of a rank, which with several threads is the sum of as many of the cluster's devices. 0 =
/// none.
Bytes memory_limit(const Cluster& cluster, const RunSummary& run, std::size_t rank) {
  const int threads = std::max(1, run.threads_per_rank / threads_of(cluster.devices.front().type));
  const std::size_t begin = rank * static_cast<std::size_t>(threads), end = begin + static_cast<std::size_t>(threads);
  if (end > cluster.devices.size()) return 0;
  Bytes sum = 0;
  for (std::size_t i = begin; i < end; ++i) {
    if (!cluster.devices[i].memory_limit_bytes) return 0;
    sum += *cluster.devices[i].memory_limit_bytes;
  }
  return sum;
}

std::vector<MemoryRow> memory_rows(const Comparison& comparison, const std::optional<Cluster>& cluster) {
  std::vector<MemoryRow> rows;
  const std::size_t n = comparison.runs.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (const PhaseSummary& phase : comparison.runs[i].phases) {
      const std::size_t ranks =
          std::max(phase.predicted_peak_memory_bytes.size(), phase.measured_peak_memory_bytes.size());
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        MemoryRow row{.label = fmt::format("{}, from step {}, rank {}", comparison.runs[i].name, phase.from_step, rank),
                      .colour = run_colour(i, n),
                      .predicted = value_at(phase.predicted_peak_memory_bytes, rank),
                      .measured = value_at(phase.measured_peak_memory_bytes, rank)};
        if (cluster) row.limit = memory_limit(*cluster, comparison.runs[i], rank);
        rows.push_back(row);
      }
    }
  }
  return rows;
}

}  // namespace

std::string run_charts(const Comparison& comparison) {
  const std::string time = four_charts(comparison, true), steps = four_charts(comparison, false);
  if (steps.empty()) return "";
  return "<input class=\"axis-choice\" type=\"radio\" name=\"axis\" id=\"axis-time\" checked>"
         "<input class=\"axis-choice\" type=\"radio\" name=\"axis\" id=\"axis-steps\">"
         "<label class=\"axis-label\" for=\"axis-time\">over time</label>"
         "<label class=\"axis-label\" for=\"axis-steps\">over steps</label>\n" +
         runs_legend(comparison) + "<div class=\"charts by-time\">\n" + time +
         "</div>\n<div class=\"charts by-steps\">\n" + steps + "</div>\n";
}

std::string phase_timelines(const Comparison& comparison) {
  std::string html;
  const std::size_t n = comparison.runs.size();
  for (std::size_t i = 0; i < n; ++i) {
    const RunSummary& run = comparison.runs[i];
    for (const PhaseSummary& phase : run.phases) {
      const std::string picture = timeline_html(phase.predicted_timeline, phase.measured_timeline);
      if (picture.empty()) continue;
      html += fmt::format(
          "<h3>{}, steps {} to {} "
          "<span class=\"muted\">· {} frozen · {} · {} · {}</span></h3>\n{}",
          run_label(i, n, run.name), phase.from_step, phase.from_step + phase.num_steps - 1, phase.frozen_blocks,
          shape_text(phase, " × "), micro_batches_text(phase), escape_html(phase.schedule), picture);
    }
  }
  return html.empty() ? "" : timeline_legend() + html;
}

std::string memory_bars(const Comparison& comparison, const std::optional<Cluster>& cluster) {
  const std::vector<MemoryRow> rows = memory_rows(comparison, cluster);
  Bytes largest = 0;
  for (const MemoryRow& row : rows) largest = std::max({largest, row.predicted, row.measured, row.limit});
  if (largest == 0) return "";

  const auto percent = [&](Bytes bytes) {
    return coordinate(100 * static_cast<double>(bytes) / static_cast<double>(largest));
  };
  std::string html = "<div class=\"memory\">\n";
  for (const MemoryRow& row : rows) {
    html += fmt::format(
        "<span>{}</span><svg class=\"bar\" viewBox=\"0 0 100 19\" preserveAspectRatio=\"none\" role=\"img\" "
        "aria-label=\"memory\">",
        escape_html(row.label));
    if (row.measured > 0)
      html += fmt::format(
          "<rect class=\"{} soft\" x=\"0\" y=\"3\" width=\"{}\" height=\"13\"><title>measured {}</title></rect>",
          row.colour, percent(row.measured), format_bytes(row.measured));
    if (row.predicted > 0)
      html += fmt::format(
          "<line class=\"mark\" x1=\"{0}\" x2=\"{0}\" y1=\"2\" y2=\"17\"><title>predicted {1}</title></line>",
          percent(row.predicted), format_bytes(row.predicted));
    if (row.limit > 0)
      html +=
          fmt::format("<line class=\"limit\" x1=\"{0}\" x2=\"{0}\" y1=\"0\" y2=\"19\"><title>limit {1}</title></line>",
                      percent(row.limit), format_bytes(row.limit));
    html += fmt::format("</svg><b{}>{}</b>\n", row.limit > 0 && row.measured > row.limit ? " class=\"bad\"" : "",
                        row.measured > 0 ? in_mebibytes(row.measured) : "–");
  }
  return html + "</div>\n";
}

std::string accuracy_intervals(const Comparison& comparison) {
  if (comparison.accuracies.empty()) return "";
  double extent = 2;  // percentage points to either side of 0
  for (const PairedAccuracy& paired : comparison.accuracies) {
    extent = std::max({extent, std::abs(100 * paired.low), std::abs(100 * paired.high)});
  }
  // The chart is as wide as the page on a phone, including the labels of the outermost ticks.
  constexpr double kMiddle = 170, kHalf = 146, kBar = 20;
  const auto x = [&](double points) { return coordinate(kMiddle + points / extent * kHalf); };
  const std::vector<double> ticks = nice_ticks(-extent, extent, 6);
  const auto begin = [&](double height) {
    return fmt::format(
        "<svg class=\"chart interval\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"accuracy differences\">",
        2 * kMiddle, height);
  };
  std::string html;
  for (const PairedAccuracy& paired : comparison.accuracies) {
    html += fmt::format("<p class=\"interval\">{} − {}: <b>{}</b> <span class=\"muted\">({} to {})</span></p>\n",
                        escape_html(paired.run), escape_html(paired.baseline), signed_number(100 * paired.difference),
                        signed_number(100 * paired.low), signed_number(100 * paired.high));
    html += begin(kBar);
    for (const double tick : ticks)
      html += fmt::format("<line class=\"{0}\" x1=\"{1}\" x2=\"{1}\" y1=\"0\" y2=\"{2}\"/>",
                          std::abs(tick) < 1e-9 ? "axis" : "grid", x(tick), kBar);
    const double low = kMiddle + 100 * paired.low / extent * kHalf, high = kMiddle + 100 * paired.high / extent * kHalf;
    html += fmt::format(
        "<rect class=\"run-2 soft\" x=\"{}\" y=\"6\" width=\"{}\" height=\"8\" rx=\"2\"/><g class=\"run-2\"><circle "
        "cx=\"{}\" cy=\"10\" r=\"5\"/></g></svg>\n",
        coordinate(low), coordinate(std::max(2.0, high - low)), x(100 * paired.difference));
  }
  html += begin(16);
  for (const double tick : ticks)
    html += fmt::format("<text class=\"tick middle\" x=\"{}\" y=\"12\">{}</text>", x(tick), tick_label(tick, ticks));
  return html + "</svg>\n";
}

}  // namespace frostpipe
