#include "cli/shared/run_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "cli/shared/one_process_text.h"
#include "cli/shared/report_words.h"
#include "cli/shared/run_settings.h"
#include "cli/shared/shape_text.h"
#include "cli/shared/table.h"
#include "plan/run_length.h"
#include "plan/time_terms.h"

namespace frostpipe {
namespace {

using enum Table::Align;

std::string measured_range(const PhaseSummary& phase) {
  return in_milliseconds(phase.measured_iteration_low_ns) + " - " + in_milliseconds(phase.measured_iteration_high_ns);
}

/// Shows the fraction of hits, such as "20 % + 75 %" (at the boundary, and at an earlier one); "-" without a cache.
std::string cache_hits(const PhaseSummary& phase) {
  if (!phase.cache) return "-";
  const std::string hits = fmt::format("{:.0f} %", 100 * phase.cache_hit_fraction);
  return phase.cache_base_fraction > 0 ? fmt::format("{} + {:.0f} %", hits, 100 * phase.cache_base_fraction) : hits;
}

std::string run_phases_text(const RunSummary& run) {
  Table table({{"from step", right},
               {"steps", right},
               {"frozen", right},
               {shape_heading(std::vector{run}), right},
               {"partition", left},
               {"micro-batches", right},
               {"schedule", left},
               {"cache hits", right},
               {"iteration [ms]", right},
               {"10-90 % [ms]", right},
               {"samples/s", right},
               {"memory per rank [MiB]", left},
               {"change [ms]", right}});
  for (const PhaseSummary& phase : run.phases) {
    table.add_row({std::to_string(phase.from_step), std::to_string(phase.num_steps),
                   std::to_string(phase.frozen_blocks), shape_text(phase), phase.partition,
                   std::to_string(phase.num_micro_batches), phase.schedule, cache_hits(phase),
                   in_milliseconds(phase.measured_iteration_ns), measured_range(phase),
                   fmt::format("{:.1f}", phase.samples_per_second), in_mebibytes(phase.measured_peak_memory_bytes),
                   in_milliseconds(phase.transformation_ns)});
  }
  return table.to_string();
}

std::string runs_text(const std::vector<RunSummary>& runs) {
  std::vector<Table::Column> columns = {
      {"run", left},          {"freezing", left},   {"samples/s", right},      {"training [s]", right},
      {"changes [s]", right}, {"start [s]", right}, {"evaluation [s]", right}, {test_metric_of(runs) + " [%]", right},
      {"s.e.", right}};
  const std::vector<std::string> others = other_measures(runs);
  for (const std::string& name : others) columns.push_back({measure_heading(name), right});
  columns.push_back({"peak memory [MiB]", right});
  Table table(columns);
  for (const RunSummary& run : runs) {
    std::vector<std::string> cells = {
        run.name,
        run.freeze,
        fmt::format("{:.1f}", run.samples_per_second),
        fmt::format("{:.1f}", run.wall_seconds),
        fmt::format("{:.2f}", static_cast<double>(total_transformation_ns(run)) / 1e9),
        fmt::format("{:.1f}", run.start_seconds),
        fmt::format("{:.1f}", run.evaluation_seconds),
        run.num_test_samples > 0 ? fmt::format("{:.1f}", 100 * run.test_accuracy) : "-",
        run.num_test_samples > 0 ? fmt::format("{:.1f}", 100 * run.test_accuracy_standard_error) : "-"};
    for (const std::string& name : others) {
      const std::string value = other_measure(run, name);
      cells.push_back(value.empty() ? "-" : value);
    }
    const Bytes peak = peak_memory_bytes(run);
    cells.push_back(peak > 0 ? in_mebibytes(peak) : "-");
    table.add_row(cells);
  }
  return table.to_string();
}

/// Says that a classifier gives one label to all samples though the data have several, as it does where one label is
/// far more frequent than the others.
std::string only_prediction_text(const RunSummary& run) {
  const auto differs = [](const std::vector<int>& values) {
    return std::ranges::adjacent_find(values, std::ranges::not_equal_to()) != values.end();
  };
  if (run.test_predictions.empty() || differs(run.test_predictions) || !differs(run.test_labels)) return "";
  const auto label = static_cast<std::size_t>(run.test_predictions.front());
  return fmt::format("; ALL test samples are predicted as {}",
                     label < run.label_names.size() ? "\"" + run.label_names[label] + "\"" : std::to_string(label));
}

std::string accuracy_line(const RunSummary& run) {
  if (run.num_test_samples == 0) return {};
  std::string others = only_prediction_text(run);
  for (const NamedValue& other : run.test_others) others += "; " + measure_text(other);
  return fmt::format("{}: {:.1f} % +- {:.1f} (standard error, {}){}\n", run.test_metric, 100 * run.test_accuracy,
                     100 * run.test_accuracy_standard_error, plural(run.num_test_samples, "test sample"), others);
}

/// Says how much was trained, and how. A net's rehearsal has neither epochs nor a seed.
std::string length_text(const RunSummary& run) {
  const std::string length =
      fmt::format("{} steps of mini-batch {}, freezing by {}", run.num_steps, run.global_batch_size, run.freeze);
  if (run.is_emulated && run.net) return length;
  return fmt::format("{}, {}, seed {}", epochs_text(run.epochs), length, run.seed);
}

}  // namespace

std::string measure_text(const NamedValue& measure) {
  const bool has_unit = measure_heading(measure.name) != measure.name;
  return fmt::format("{} {}{}", measure.name, measure_number(measure), has_unit ? " %" : "");
}

std::string recoveries_text(const RunSummary& run) {
  std::string text;
  for (const Recovery& recovery : run.recoveries) {
    text += fmt::format("went on with step {} on {} rank{} from {}: {}\n  ", recovery.step, recovery.world_size,
                        recovery.world_size == 1 ? "" : "s", recovery.source, recovery.cause);
    if (recovery.lost_steps > 0)
      text += fmt::format("{} step{} done again ({}), ", recovery.lost_steps, recovery.lost_steps == 1 ? "" : "s",
                          format_duration(recovery.lost_work_ns));
    if (recovery.rendezvous_ns > 0)
      text += fmt::format("noticed in {}, reconnected in {}, ", format_duration(recovery.detection_ns),
                          format_duration(recovery.rendezvous_ns));
    text += fmt::format("restored in {}\n", format_duration(recovery.restoring_ns));
    if (!recovery.choice.empty()) text += fmt::format("  {}\n", recovery.choice);
  }
  return text;
}

std::string run_text(const RunSummary& run, const std::string& folder) {
  const std::string net =
      run.net ? fmt::format("{} by {} on {}, ", run.net->net, run.method, fmt::join(run.net->device_classes, " + "))
              : "";
  return fmt::format(
      "{}: {}{}{}\n\n{}\n"
      "throughput: {:.1f} samples/s over {:.1f} s of {} (changes included; start {:.1f} s and evaluation {:.1f} "
      "s not)\n"
      "{}{}{}written to {}\n",
      run.name, run.is_emulated ? "rehearsal of " : "", net, length_text(run), run_phases_text(run),
      run.samples_per_second, run.wall_seconds, run.is_emulated ? "rehearsal" : "training", run.start_seconds,
      run.evaluation_seconds, accuracy_line(run), one_process_line(run), recoveries_text(run), folder);
}

std::string phases_text(const std::vector<RunSummary>& runs) {
  Table times({{"run", left},
               {"from step", right},
               {"steps", right},
               {"frozen", right},
               {shape_heading(runs), right},
               {"micro-batches", right},
               {"cache hits", right},
               {"predicted [ms]", right},
               {"measured [ms]", right},
               {"error [%]", right},
               {"what is off", left},
               {"10-90 % [ms]", right},
               {"samples/s", right}});
  Table costs({{"run", left},
               {"from step", right},
               {"peak memory predicted [MiB]", left},
               {"measured [MiB]", left},
               {"change predicted [ms]", right},
               {"measured [ms]", right}});
  for (const RunSummary& run : runs) {
    for (const PhaseSummary& phase : run.phases) {
      times.add_row({run.name, std::to_string(phase.from_step), std::to_string(phase.num_steps),
                     std::to_string(phase.frozen_blocks), shape_text(phase), std::to_string(phase.num_micro_batches),
                     cache_hits(phase), in_milliseconds(phase.predicted_iteration_ns),
                     in_milliseconds(phase.measured_iteration_ns),
                     error_percent(phase.predicted_iteration_ns, phase.measured_iteration_ns), term_that_is_off(phase),
                     measured_range(phase), fmt::format("{:.1f}", phase.samples_per_second)});
      costs.add_row({run.name, std::to_string(phase.from_step), in_mebibytes(phase.predicted_peak_memory_bytes),
                     in_mebibytes(phase.measured_peak_memory_bytes), in_milliseconds(phase.predicted_transformation_ns),
                     in_milliseconds(phase.transformation_ns)});
    }
  }
  return "Iteration time of each phase\n\n" + times.to_string() +
         "\nPeak memory per rank, and the change into each phase\n\n" + costs.to_string();
}

std::string comparison_text(const Comparison& comparison) {
  std::string text = phases_text(comparison.runs) + "\nRuns\n\n" + runs_text(comparison.runs);
  if (!comparison.speedups.empty()) text += "\n";
  if (const std::string sentence = settings_sentence(comparison.runs); !sentence.empty()) text += sentence + "\n";
  for (const Speedup& speedup : comparison.speedups) {
    text += fmt::format("{} is {:.2f} times as fast as {}{} (10-90 %: {:.2f} to {:.2f}, this run's own noise)\n",
                        speedup.run, speedup.factor, speedup.baseline, fastest_clause(comparison, speedup.baseline),
                        speedup.low, speedup.high);
  }
  for (const PairedAccuracy& paired : comparison.accuracies) {
    text += fmt::format("accuracy of {} minus {}: {:+.1f} points (95 % interval {:+.1f} to {:+.1f}, same test items)\n",
                        paired.run, paired.baseline, 100 * paired.difference, 100 * paired.low, 100 * paired.high);
  }
  for (const RunSummary& run : comparison.runs) text += one_process_line(run);
  for (const WhatIf& what_if : comparison.what_ifs) text += fmt::format("what if: {}\n", what_if.sentence);
  return text;
}

}  // namespace frostpipe
