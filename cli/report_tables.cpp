#include "cli/report_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/report_words.h"
#include "cli/svg.h"
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

/// The 10 to 90 % range as a bar, its median as a line and the prediction as a dot, on one scale for all phases.
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
  return fmt::format("{} <small>/ {}</small>", milliseconds_or_dash(phase.predicted_transformation_ns),
                     milliseconds_or_dash(phase.transformation_ns));
}

/// The error, and below it the term that is off.
std::string error_cell(const PhaseSummary& phase) {
  const std::string error = prediction_error_percent(phase.predicted_iteration_ns, phase.measured_iteration_ns);
  if (error.empty()) return "–";
  const std::string term = term_that_is_off(phase);
  return term.empty() ? error : fmt::format("{}<br><small>{}</small>", error, escape_html(term));
}

/// Samples found in the cache: at the boundary, and at an earlier one.
std::string cache_cell(const PhaseSummary& phase) {
  if (!phase.cache) return "–";
  const std::string hits = fmt::format("{:.0f} %", 100 * phase.cache_hit_fraction);
  return phase.cache_base_fraction > 0 ? fmt::format("{} <small>+ {:.0f} %</small>", hits, 100 * phase.cache_base_fraction) : hits;
}

std::string phase_row(const PhaseSummary& phase, const std::string& label, const std::string& colour,
                      Nanoseconds scale_ns) {
  return fmt::format(
      "<tr><td class=\"l\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
      "<td class=\"l\">{} × {}, {}, {}<br><small>layers {}, {} tokens</small></td>"
      "<td>{}</td><td class=\"strong\">{}</td><td>{}</td><td class=\"l\">{}</td>"
      "<td>{:.0f}</td><td>{}</td></tr>\n",
      label, phase.from_step, phase.num_steps, phase.frozen_layers, cache_cell(phase), phase.stages, phase.replicas,
      plural(phase.num_micro_batches, "micro-batch"), escape_html(phase.schedule), escape_html(phase.partition),
      phase.tokens, milliseconds_or_dash(phase.predicted_iteration_ns),
      milliseconds_or_dash(phase.measured_iteration_ns), error_cell(phase),
      prediction_strip(phase, scale_ns, colour), phase.samples_per_second, transformation_cell(phase));
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
  std::string html =
      "<div class=\"scroll\"><table><tr><th class=\"l\">run</th><th class=\"l\">freezing</th><th>throughput<br>"
      "<small>samples/s</small></th>";
  if (compared) {
    html += fmt::format("<th>{}'s throughput<br>over this one's <small>10–90 %</small></th>",
                        escape_html(comparison.runs.back().name));
  }
  html +=
      "<th>training loop<br><small>s</small></th><th>of it changing<br>layout <small>s</small></th>"
      "<th>start<br><small>s</small></th><th>evaluation<br><small>s</small></th>"
      "<th>test accuracy<br><small>% ± s.e.</small></th><th>peak memory<br><small>MiB, largest "
      "rank</small></th></tr>\n";
  const std::size_t n = comparison.runs.size();
  for (std::size_t i = 0; i < n; ++i) {
    const RunSummary& run = comparison.runs[i];
    html += fmt::format("<tr><td class=\"l\">{}</td><td class=\"l\">{}</td><td class=\"strong\">{:.1f}</td>",
                        run_label(i, n, run.name), escape_html(run.freeze), run.samples_per_second);
    if (compared) {
      const Speedup* speedup = speedup_over(comparison, run.name);
      html += speedup && i + 1 < n ? fmt::format("<td>{:.2f}× <small>{:.2f}–{:.2f}</small></td>", speedup->factor,
                                                 speedup->low, speedup->high)
                                   : "<td></td>";
    }
    const Bytes peak = peak_memory_bytes(run);
    html += fmt::format(
        "<td>{:.1f}</td><td>{:.2f}</td><td>{:.1f}</td><td>{:.1f}</td><td>{:.1f} ± {:.1f}</td><td>{}</td></tr>\n",
        run.wall_seconds, static_cast<double>(total_transformation_ns(run)) / 1e9, run.start_seconds,
        run.evaluation_seconds, 100 * run.test_accuracy, 100 * run.test_accuracy_standard_error,
        peak > 0 ? fmt::format("{:.0f}", static_cast<double>(peak) / (1 << 20)) : "–");
  }
  return html + "</table></div>\n";
}

std::string phases_table(const Comparison& comparison) {
  std::string html =
      "<div class=\"scroll\"><table><tr><th class=\"l\">run</th><th>from<br>step</th><th>steps</th>"
      "<th>frozen<br>layers</th><th>cache<br><small>hits + earlier</small></th><th class=\"l\">stages × replicas</th>"
      "<th>predicted<br><small>ms</small></th><th>measured<br><small>ms, median</small></th><th>error</th>"
      "<th class=\"l\">measured 10–90 %,<br>predicted ○</th><th>samples/s</th>"
      "<th>change into it<br><small>ms, pred. / meas.</small></th></tr>\n";
  const Nanoseconds scale_ns = longest_iteration(comparison);
  const std::size_t n = comparison.runs.size();
  for (std::size_t i = 0; i < n; ++i) {
    bool first = true;
    for (const PhaseSummary& phase : comparison.runs[i].phases) {
      html += phase_row(phase, first ? run_label(i, n, comparison.runs[i].name) : "", run_colour(i, n), scale_ns);
      first = false;
    }
  }
  return html + "</table></div>\n";
}

std::string what_ifs_table(const Comparison& comparison) {
  if (comparison.what_ifs.empty()) return "";
  std::string html =
      "<div class=\"scroll\"><table><tr><th class=\"l\">what if</th><th>iteration<br><small>ms</small></th>"
      "<th>instead of<br><small>ms</small></th><th>change</th><th class=\"l\">in words</th></tr>\n";
  for (const WhatIf& what_if : comparison.what_ifs) {
    html += fmt::format(
        "<tr><td class=\"l\">{}</td><td class=\"strong\">{}</td><td>{}</td><td>{}</td><td class=\"l "
        "wrap\">{}</td></tr>\n",
        escape_html(what_if.name), milliseconds_or_dash(what_if.iteration_ns),
        milliseconds_or_dash(what_if.baseline_iteration_ns),
        prediction_error_percent(what_if.iteration_ns, what_if.baseline_iteration_ns), escape_html(what_if.sentence));
  }
  return html + "</table></div>\n";
}

std::string labels_table(const Comparison& comparison) {
  if (comparison.runs.empty() || comparison.runs.back().label_names.empty()) return "";
  const std::size_t n = comparison.runs.size();
  const std::vector<std::string>& names = comparison.runs.back().label_names;
  std::vector<std::vector<LabelCount>> counts;
  std::string html = "<div class=\"scroll\"><table><tr><th class=\"l\">label</th><th>test items</th>";
  for (std::size_t i = 0; i < n; ++i) {
    if (comparison.runs[i].label_names != names) return "";
    counts.push_back(count_labels(comparison.runs[i]));
    html +=
        fmt::format("<th>{}<br><small>recall / precision, %</small></th>", run_label(i, n, comparison.runs[i].name));
  }
  html += "</tr>\n";
  const auto percent = [](int part, int whole) {
    return whole > 0 ? fmt::format("{:.1f}", 100.0 * part / whole) : std::string("–");
  };
  for (std::size_t label = 0; label < names.size(); ++label) {
    html +=
        fmt::format("<tr><td class=\"l\">{}</td><td>{}</td>", escape_html(names[label]), counts.back()[label].count);
    for (std::size_t i = 0; i < n; ++i) {
      const LabelCount& count = counts[i][label];
      html += fmt::format("<td>{} <small>/ {}</small></td>", percent(count.hits, count.count),
                          percent(count.hits, count.predicted));
    }
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

}  // namespace frostpipe
