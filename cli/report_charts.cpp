#include "cli/report_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "cli/report_tables.h"
#include "cli/report_words.h"
#include "cli/svg.h"
#include "cli/svg_chart.h"
#include "cli/svg_timeline.h"

namespace frostpipe {
namespace {

/// x position of a step's start: its number, or the seconds of training before it.
using StepPosition = std::function<double(int step)>;

StepPosition by_steps() {
  return [](int step) { return static_cast<double>(step); };
}

/// Recorded iterations summed up, with the changes of layout where they happened.
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

std::vector<ChartPoint> frozen_layers(const RunSummary& run, const StepPosition& x) {
  std::vector<ChartPoint> points;
  for (const PhaseSummary& phase : run.phases) {
    points.push_back({x(phase.from_step), static_cast<double>(phase.frozen_layers)});
  }
  if (!points.empty()) points.push_back({x(run.num_steps), points.back().y});
  return points;
}

/// Moving median over nine steps: a pause of the machine does not hide the level.
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

/// Exponential average with weight 1/8 of the new value, corrected for its start.
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
  Chart frozen{.title = "Frozen layers",
               .x_label = x_label,
               .y_label = "Transformer blocks",
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
  Chart score{.title = "Test accuracy", .x_label = x_label, .y_label = "%", .series = {}, .y_low = {}, .y_high = {}};
  const std::size_t n = comparison.runs.size();
  for (std::size_t i = 0; i < n; ++i) {
    const RunSummary& run = comparison.runs[i];
    const StepPosition x = in_time ? by_time(run) : by_steps();
    const std::string colour = run_colour(i, n);
    frozen.series.push_back({run.name, colour, Shape::steps, frozen_layers(run, x)});
    speed.series.push_back({run.name, colour, Shape::line, throughput(run, x)});
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
        if (cluster && rank < cluster->devices.size())
          row.limit = cluster->devices[rank].memory_limit_bytes.value_or(0);
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
      const std::string svg = timeline_svg(phase.predicted_timeline, phase.measured_timeline);
      if (svg.empty()) continue;
      html += fmt::format(
          "<h3>{}, steps {} to {} <span class=\"muted\">· {} frozen · {} × {} · {} · {}</span></h3>\n"
          "<div class=\"scroll\">{}</div>\n",
          run_label(i, n, run.name), phase.from_step, phase.from_step + phase.num_steps - 1, phase.frozen_layers,
          phase.stages, phase.replicas, plural(phase.num_micro_batches, "micro-batch"), escape_html(phase.schedule),
          svg);
    }
  }
  return html.empty() ? "" : timeline_legend() + html;
}

std::string memory_bars(const Comparison& comparison, const std::optional<Cluster>& cluster) {
  const std::vector<MemoryRow> rows = memory_rows(comparison, cluster);
  Bytes largest = 0;
  for (const MemoryRow& row : rows) largest = std::max({largest, row.predicted, row.measured, row.limit});
  if (largest == 0) return "";

  constexpr double kLeft = 250, kWidth = 820, kRight = 70, kRow = 19;
  const double scale = (kWidth - kLeft - kRight) / static_cast<double>(largest);
  std::string svg = fmt::format("<svg class=\"wide chart\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"memory\">\n",
                                kWidth, coordinate(kRow * static_cast<double>(rows.size()) + 4));
  double y = 2;
  for (const MemoryRow& row : rows) {
    svg += fmt::format("<text class=\"tick end\" x=\"{}\" y=\"{}\">{}</text>", kLeft - 8, coordinate(y + 12),
                       escape_html(row.label));
    svg += fmt::format(
        "<rect class=\"{} soft\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"13\" rx=\"2\"><title>measured "
        "{}</title></rect>",
        row.colour, kLeft, coordinate(y + 2), coordinate(static_cast<double>(row.measured) * scale),
        format_bytes(row.measured));
    if (row.predicted > 0) {
      const std::string x = coordinate(kLeft + static_cast<double>(row.predicted) * scale);
      svg += fmt::format(
          "<line class=\"mark\" x1=\"{0}\" x2=\"{0}\" y1=\"{1}\" y2=\"{2}\"><title>predicted {3}</title></line>", x,
          coordinate(y + 1), coordinate(y + 16), format_bytes(row.predicted));
    }
    if (row.limit > 0) {
      const std::string x = coordinate(kLeft + static_cast<double>(row.limit) * scale);
      svg += fmt::format(
          "<line class=\"limit\" x1=\"{0}\" x2=\"{0}\" y1=\"{1}\" y2=\"{2}\"><title>limit {3}</title></line>", x,
          coordinate(y - 1), coordinate(y + kRow - 1), format_bytes(row.limit));
    }
    svg += fmt::format("<text x=\"{}\" y=\"{}\"{}>{:.0f}</text>\n", kWidth - kRight + 14, coordinate(y + 12),
                       row.limit > 0 && row.measured > row.limit ? " class=\"over\"" : "",
                       static_cast<double>(row.measured) / (1 << 20));
    y += kRow;
  }
  return "<div class=\"scroll\">" + svg + "</svg></div>\n";
}

std::string accuracy_intervals(const Comparison& comparison) {
  if (comparison.accuracies.empty()) return "";
  double extent = 2;  // points to either side
  for (const PairedAccuracy& paired : comparison.accuracies) {
    extent = std::max({extent, std::abs(100 * paired.low), std::abs(100 * paired.high)});
  }
  constexpr double kMiddle = 500, kHalf = 200, kRow = 24;
  const auto x = [&](double points) { return kMiddle + points / extent * kHalf; };
  const double bottom = kRow * static_cast<double>(comparison.accuracies.size()) + 4;
  std::string svg = fmt::format(
      "<svg class=\"wide chart\" viewBox=\"0 0 820 {}\" role=\"img\" aria-label=\"accuracy differences\">\n",
      coordinate(bottom + 20));
  const std::vector<double> ticks = nice_ticks(-extent, extent, 8);
  for (const double tick : ticks) {
    const std::string px = coordinate(x(tick));
    svg += fmt::format(
        "<line class=\"{}\" x1=\"{}\" x2=\"{}\" y1=\"0\" y2=\"{}\"/><text class=\"tick middle\" x=\"{}\" "
        "y=\"{}\">{}</text>",
        std::abs(tick) < 1e-9 ? "axis" : "grid", px, px, coordinate(bottom), px, coordinate(bottom + 14),
        tick_label(tick, ticks));
  }
  double y = kRow / 2;
  for (const PairedAccuracy& paired : comparison.accuracies) {
    svg += fmt::format("<text class=\"tick\" x=\"0\" y=\"{}\">{} − {}</text>", coordinate(y + 4),
                       escape_html(paired.run), escape_html(paired.baseline));
    svg += fmt::format("<rect class=\"run-2 soft\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"8\" rx=\"2\"/>",
                       coordinate(x(100 * paired.low)), coordinate(y - 4),
                       coordinate(std::max(2.0, x(100 * paired.high) - x(100 * paired.low))));
    svg += fmt::format("<g class=\"run-2\"><circle cx=\"{}\" cy=\"{}\" r=\"5\"/></g>",
                       coordinate(x(100 * paired.difference)), coordinate(y));
    svg += fmt::format("<text x=\"712\" y=\"{}\">{} <tspan class=\"tick\">{} to {}</tspan></text>\n", coordinate(y + 4),
                       signed_number(100 * paired.difference), signed_number(100 * paired.low),
                       signed_number(100 * paired.high));
    y += kRow;
  }
  return "<div class=\"scroll\">" + svg + "</svg></div>\n";
}

}  // namespace frostpipe
