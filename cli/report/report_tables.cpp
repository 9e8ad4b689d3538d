#include "cli/report/report_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/report/html_table.h"
#include "cli/report/svg.h"
#include "cli/shared/report_words.h"
#include "cli/shared/shape_text.h"
#include "cli/shared/table.h"
#include "plan/time_terms.h"

namespace frostpipe {
namespace {

double milliseconds(Nanoseconds duration) { return static_cast<double>(duration) / 1e6; }

std::string milliseconds_or_dash(Nanoseconds duration) {
  return duration > 0 ? fmt::format("{:.1f}", milliseconds(duration)) : "–";
}

const Speedup* speedup_over(const Comparison& comparison, const std::string& baseline) {
  for (const Speedup& speedup : comparison.speedups) {
    if (speedup.baseline == baseline) return &speedup;
  }
  return nullptr;
}

/// Draws the measured 10 to 90 % range as a bar, the median as a line and the prediction as a circle, on one scale for
/// all phases.
std::string prediction_strip(const PhaseSummary& phase, Nanoseconds scale_ns, const std::string& colour) {
  const auto x = [&](Nanoseconds value) {
    return 4 + 110.0 * static_cast<double>(value) / static_cast<double>(scale_ns);
  };
  const double low = x(phase.measured_iteration_low_ns), high = x(phase.measured_iteration_high_ns);
  std::string svg = fmt::format(
      "<svg class=\"inline\" viewBox=\"0 0 120 16\"><line class=\"grid\" x1=\"4\" x2=\"114\" y1=\"8\" y2=\"8\"/>"
      "<rect class=\"{} soft\" x=\"{}\" y=\"3\" width=\"{}\" height=\"10\" rx=\"2\"><title>measured, 10 to 90 %</title>"
      "</rect><rect class=\"{}\" x=\"{}\" y=\"1\" width=\"2\" height=\"14\"><title>measured median</title></rect>",
      colour, coordinate(low), coordinate(std::max(2.0, high - low)), colour,
      coordinate(x(phase.measured_iteration_ns) - 1));
  if (phase.predicted_iteration_ns > 0) {
    svg += fmt::format(
        "<circle cx=\"{}\" cy=\"8\" r=\"3.5\" fill=\"none\" class=\"mark\"><title>predicted</title></circle>",
        coordinate(x(phase.predicted_iteration_ns)));
  }
  return svg + "</svg>";
}

Nanoseconds longest_iteration(const Comparison& comparison) {
  Nanoseconds longest = 1;
  for (const RunSummary& run : comparison.runs) {
    for (const PhaseSummary& phase : run.phases) {
      longest = std::max({longest, phase.measured_iteration_high_ns, phase.predicted_iteration_ns});
    }
  }
  return longest;
}

std::string transformation_cell(const PhaseSummary& phase) {
  if (phase.predicted_transformation_ns <= 0 && phase.transformation_ns <= 0) return "–";
  return fmt::format("{} <small>/\u00a0{}</small>", milliseconds_or_dash(phase.predicted_transformation_ns),
                     milliseconds_or_dash(phase.transformation_ns));
}

/// Returns the text with a no-break space before its unit, so that both stay on one line of a cell.
std::string with_its_unit(std::string text) {
  if (const auto space = text.rfind(' '); space != std::string::npos) text.replace(space, 1, "\u00a0");
  return text;
}

/// Returns a cell with the error, and below it the term that was predicted wrong.
std::string error_cell(const PhaseSummary& phase) {
  const std::string error =
      with_its_unit(prediction_error_percent(phase.predicted_iteration_ns, phase.measured_iteration_ns));
  if (error.empty()) return "–";
  std::string term = term_that_is_off(phase);
  if (const auto minus = term.rfind(" -"); minus != std::string::npos) term.replace(minus + 1, 1, "−");
  return term.empty() ? error : fmt::format("{}<br><small>{}</small>", error, escape_html(with_its_unit(term)));
}

/// Returns a cell with the fractions of samples found in the cache: at the boundary, and at an earlier one. The line
/// can break only between the two numbers.
std::string cache_cell(const PhaseSummary& phase) {
  if (!phase.cache) return "–";
  const std::string hits = fmt::format("{:.0f}\u00a0%", 100 * phase.cache_hit_fraction);
  return phase.cache_base_fraction > 0
             ? fmt::format("{} <small>+\u00a0{:.0f}\u00a0%</small>", hits, 100 * phase.cache_base_fraction)
             : hits;
}

std::vector<std::string> phase_row(const PhaseSummary& phase, const std::string& label, const std::string& colour,
                                   Nanoseconds scale_ns) {
  return {label,
          std::to_string(phase.from_step),
          std::to_string(phase.num_steps),
          std::to_string(phase.frozen_blocks),
          cache_cell(phase),
          fmt::format("{}, {}, {}<br><small>layers {}{}</small>", shape_text(phase, " × "), micro_batches_text(phase),
                      escape_html(phase.schedule), escape_html(phase.partition),
                      phase.devices > 0 ? "" : fmt::format(", {} tokens", phase.tokens)),
          milliseconds_or_dash(phase.predicted_iteration_ns),
          milliseconds_or_dash(phase.measured_iteration_ns),
          error_cell(phase),
          prediction_strip(phase, scale_ns, colour),
          fmt::format("{:.1f}", phase.samples_per_second),
          transformation_cell(phase)};
}

struct LabelCount {
  int count = 0, hits = 0, predicted = 0;
};

std::vector<LabelCount> count_labels(const RunSummary& run) {
  std::vector<LabelCount> counts(run.label_names.size());
  const std::size_t n = std::min(run.test_labels.size(), run.test_predictions.size());
  for (std::size_t i = 0; i < n; ++i) {
    const auto label = static_cast<std::size_t>(run.test_labels[i]);
    const auto prediction = static_cast<std::size_t>(run.test_predictions[i]);
    if (label >= counts.size() || prediction >= counts.size()) continue;
    ++counts[label].count;
    ++counts[prediction].predicted;
    if (label == prediction) ++counts[label].hits;
  }
  return counts;
}

/// Returns whether all runs were tested on equally many items of each label.
bool have_equal_counts(const std::vector<std::vector<LabelCount>>& counts_of_runs) {
  return std::ranges::all_of(counts_of_runs, [&](const std::vector<LabelCount>& counts) {
    return std::ranges::equal(counts, counts_of_runs.front(), {}, &LabelCount::count, &LabelCount::count);
  });
}

}  // namespace

std::string run_colour(std::size_t index, std::size_t num_runs) {
  if (index + 1 == num_runs) return "run-2";
  return fmt::format("run-{}", index < 2 ? index : 3 + (index - 2) % 3);
}

std::string run_label(std::size_t index, std::size_t num_runs, std::string_view name) {
  return fmt::format("<span class=\"dot {}\"></span>{}", run_colour(index, num_runs), escape_html(name));
}

std::string runs_table(const Comparison& comparison) {
  const bool compared = !comparison.speedups.empty();
  const std::string last = escape_html(comparison.runs.back().name);
  const std::string metric = test_metric_of(comparison.runs);
  std::vector<HtmlTable::Column> columns = {
      {"run", "run", "l"},
      {"freezing", "freezing", "l"},
      {"throughput<br><small>samples/s</small>", "throughput, samples/s", "strong"}};
  if (compared)
    columns.push_back({fmt::format("{}'s throughput<br>over this one's <small>10–90 %</small>", last),
                       comparison.runs.back().name + " / this one, 10–90 %", ""});
  columns.insert(columns.end(), {{"training loop<br><small>s</small>", "training loop, s", ""},
                                 {"of it changing<br>layout <small>s</small>", "of it changing layout, s", ""},
                                 {"start<br><small>s</small>", "start, s", ""},
                                 {"evaluation<br><small>s</small>", "evaluation, s", ""},
                                 {fmt::format("test {}<br><small>% ± s.e.</small>", escape_html(metric)),
                                  fmt::format("test {}, % ± s.e.", metric), ""}});
  const std::vector<std::string> others = other_measures(comparison.runs);
  for (const std::string& name : others)
    columns.push_back({"test " + escape_html(measure_heading(name)), "test " + measure_heading(name), ""});
  columns.push_back({"peak memory<br><small>MiB, largest rank</small>", "peak memory, MiB, largest rank", ""});
  HtmlTable table(columns);
  const std::size_t n = comparison.runs.size();
  for (std::size_t i = 0; i < n; ++i) {
    const RunSummary& run = comparison.runs[i];
    std::vector<std::string> cells = {run_label(i, n, run.name), escape_html(run.freeze),
                                      fmt::format("{:.1f}", run.samples_per_second)};
    if (compared) {
      const Speedup* speedup = speedup_over(comparison, run.name);
      cells.push_back(speedup && i + 1 < n ? fmt::format("{:.2f}× <small>{:.2f}–{:.2f}</small>", speedup->factor,
                                                         speedup->low, speedup->high)
                                           : "");
    }
    const Bytes peak = peak_memory_bytes(run);
    cells.insert(cells.end(), {fmt::format("{:.1f}", run.wall_seconds),
                               fmt::format("{:.2f}", static_cast<double>(total_transformation_ns(run)) / 1e9),
                               fmt::format("{:.1f}", run.start_seconds), fmt::format("{:.1f}", run.evaluation_seconds),
                               run.num_test_samples > 0 ? fmt::format("{:.1f} ± {:.1f}", 100 * run.test_accuracy,
                                                                      100 * run.test_accuracy_standard_error)
                                                        : "–"});
    for (const std::string& name : others) {
      const std::string value = other_measure(run, name);
      cells.push_back(value.empty() ? "–" : value);
    }
    cells.push_back(peak > 0 ? in_mebibytes(peak) : "–");
    table.add_row(cells);
  }
  return table.to_string();
}

std::string phases_table(const Comparison& comparison) {
  const std::string unit = frozen_unit(comparison.runs);
  HtmlTable table({{"run", "run", "l"},
                   {"from<br>step", "from step", ""},
                   {"steps", "steps", ""},
                   {"frozen<br>" + unit, "frozen " + unit, ""},
                   {"cache<br><small>hits + earlier</small>", "cache, hits + earlier", "brief"},
                   {shape_heading(comparison.runs, " × "), shape_heading(comparison.runs, " × "), "l brief"},
                   {"predicted<br><small>ms</small>", "predicted, ms", ""},
                   {"measured<br><small>ms, median</small>", "measured, ms, median", "strong"},
                   {"error", "error", "brief"},
                   {"measured 10–90\u00a0%,<br>predicted ○", "measured 10–90 %, predicted ○", "l"},
                   {"samples/s", "samples/s", ""},
                   {"change<br><small>ms, pred. / meas.</small>", "change into it, ms, pred. / meas.", "brief"}});
  const Nanoseconds scale_ns = longest_iteration(comparison);
  const std::size_t n = comparison.runs.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (const PhaseSummary& phase : comparison.runs[i].phases)
      table.add_row(phase_row(phase, run_label(i, n, comparison.runs[i].name), run_colour(i, n), scale_ns));
  }
  return table.to_string();
}

std::string what_ifs_table(const Comparison& comparison) {
  if (comparison.what_ifs.empty()) return "";
  HtmlTable table({{"what if", "what if", "l"},
                   {"iteration<br><small>ms</small>", "iteration, ms", "strong"},
                   {"instead of<br><small>ms</small>", "instead of, ms", ""},
                   {"change", "change", ""},
                   {"in words", "in words", "l wrap"}});
  for (const WhatIf& what_if : comparison.what_ifs) {
    table.add_row({escape_html(what_if.name), milliseconds_or_dash(what_if.iteration_ns),
                   milliseconds_or_dash(what_if.baseline_iteration_ns),
                   prediction_error_percent(what_if.iteration_ns, what_if.baseline_iteration_ns),
                   escape_html(what_if.sentence)});
  }
  return table.to_string();
}

std::string labels_table(const Comparison& comparison) {
  if (comparison.runs.empty() || comparison.runs.back().test_labels.empty()) return "";
  const std::size_t n = comparison.runs.size();
  const std::vector<std::string>& names = comparison.runs.back().label_names;
  std::vector<std::vector<LabelCount>> counts;
  for (const RunSummary& run : comparison.runs) {
    if (run.label_names != names) return "";
    counts.push_back(count_labels(run));
  }
  const bool same_items = have_equal_counts(counts);
  std::vector<HtmlTable::Column> columns = {{"label", "label", "l"}};
  if (same_items) columns.push_back({"test items", "test items", ""});
  for (std::size_t i = 0; i < n; ++i) {
    const std::string& name = comparison.runs[i].name;
    if (!same_items)
      columns.push_back({run_label(i, n, name) + "<br><small>test items</small>", name + ": test items", ""});
    columns.push_back(
        {run_label(i, n, name) + "<br><small>recall / precision, %</small>", name + ": recall / precision, %", ""});
  }
  HtmlTable table(columns);
  const auto percent = [](int part, int whole) {
    return whole > 0 ? fmt::format("{:.1f}", 100.0 * part / whole) : std::string("–");
  };
  for (std::size_t label = 0; label < names.size(); ++label) {
    std::vector<std::string> cells = {escape_html(names[label])};
    if (same_items) cells.push_back(std::to_string(counts.front()[label].count));
    for (std::size_t i = 0; i < n; ++i) {
      const LabelCount& count = counts[i][label];
      if (!same_items) cells.push_back(std::to_string(count.count));
      cells.push_back(fmt::format("{} <small>/ {}</small>", percent(count.hits, count.count),
                                  percent(count.hits, count.predicted)));
    }
    table.add_row(cells);
  }
  return table.to_string();
}

}  // namespace frostpipe
