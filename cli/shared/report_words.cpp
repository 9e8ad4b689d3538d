#include "cli/shared/report_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace frostpipe {
namespace {

std::string capitalised(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

/// Returns the smallest difference, in percentage points, that the paired items can tell from zero at 95 % confidence:
/// half the width of the interval, or by the rule of three if every item was right in both runs or wrong in both.
double smallest_seen(const PairedAccuracy& paired, std::size_t num_items) {
  const double half_width = 50 * (paired.high - paired.low);
  return half_width > 0 ? half_width : 300.0 / static_cast<double>(std::max<std::size_t>(1, num_items));
}

/// Gives the difference to each of the other runs with its interval, and does not judge whether it is significant.
std::string accuracy_clause(const std::vector<PairedAccuracy>& accuracies) {
  if (accuracies.empty()) return "";
  std::vector<std::string> parts;
  for (const PairedAccuracy& paired : accuracies) {
    parts.push_back(fmt::format("by {} points from {} (95 % interval {} to {})", signed_number(100 * paired.difference),
                                run_in_words(paired.baseline), signed_number(100 * paired.low),
                                signed_number(100 * paired.high)));
  }
  return "; its accuracy differs " + listed(parts);
}

}  // namespace

std::string listed(const std::vector<std::string>& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += i + 1 == parts.size() ? " and " : ", ";
    text += parts[i];
  }
  return text;
}

std::string run_in_words(std::string_view name) {
  if (name == "one_process") return "one process on all cores";
  if (name == "data_parallel") return "data parallelism alone";
  if (name == "static_pipeline") return "the best static pipeline";
  if (name == "elastic") return "the elastic run";
  return fmt::format("the run {}", name);
}

std::string fastest_clause(const Comparison& comparison, std::string_view baseline) {
  return fastest_other(comparison) == baseline ? ", the fastest of the others" : "";
}

std::string headline(const Comparison& comparison) {
  if (comparison.runs.empty()) return "No runs.";
  const RunSummary& last = comparison.runs.back();
  const std::string subject = capitalised(run_in_words(last.name));
  const char* const did = last.is_emulated ? "rehearsed" : "trained";
  if (comparison.speedups.empty()) {
    const std::string reached =
        last.num_test_samples > 0
            ? fmt::format(" and reached {:.1f} % {} (standard error {:.1f})", 100 * last.test_accuracy,
                          last.test_metric, 100 * last.test_accuracy_standard_error)
            : "";
    return fmt::format("{} {} {:.1f} samples per second{}.", subject, did, last.samples_per_second, reached);
  }
  std::vector<Speedup> speedups = comparison.speedups;
  std::stable_sort(speedups.begin(), speedups.end(),
                   [](const Speedup& a, const Speedup& b) { return a.factor > b.factor; });
  std::vector<std::string> parts;
  for (const Speedup& speedup : speedups) {
    parts.push_back(fmt::format("{:.2f}× as fast as {}{}", speedup.factor, run_in_words(speedup.baseline),
                                fastest_clause(comparison, speedup.baseline)));
  }
  return fmt::format("{} {} {}{}.", subject, did, listed(parts), accuracy_clause(comparison.accuracies));
}

std::string accuracy_sentence(const Comparison& comparison) {
  if (comparison.accuracies.empty()) return "";
  const RunSummary& last = comparison.runs.back();
  std::vector<std::string> parts;
  for (const PairedAccuracy& paired : comparison.accuracies)
    parts.push_back(fmt::format("{:.1f} points from {}", smallest_seen(paired, last.test_items.size()),
                                run_in_words(paired.baseline)));
  return fmt::format(
      "Accuracy {:.1f} %, over the same {} test items. At 95 % the smallest difference that they can show is {}: a "
      "smaller one may be there unseen.",
      100 * last.test_accuracy, grouped(static_cast<long long>(last.test_items.size())), listed(parts));
}

std::string plural(long long count, std::string_view word) {
  return fmt::format("{} {}{}", grouped(count), word, count == 1 ? "" : word.ends_with("tch") ? "es" : "s");
}

std::string micro_batches_text(const PhaseSummary& phase) {
  return phase.devices > 0 ? "whole mini-batch" : plural(phase.num_micro_batches, "micro-batch");
}

std::string ranks_text(int ranks, int threads) {
  return fmt::format("{} rank{}{}", ranks, ranks == 1 ? "" : "s",
                     threads == 1 ? "" : fmt::format(" with {} threads{}", threads, ranks == 1 ? "" : " each"));
}

std::string prediction_error_percent(Nanoseconds predicted, Nanoseconds measured) {
  if (predicted <= 0 || measured <= 0) return "";
  return signed_number(100.0 * static_cast<double>(predicted - measured) / static_cast<double>(measured)) + " %";
}

std::string signed_number(double value) {
  const std::string digits = fmt::format("{:.1f}", value < 0 ? -value : value);
  if (digits == "0.0") return digits;
  return (value < 0 ? "−" : "+") + digits;
}

std::string grouped(long long value) {
  std::string text = std::to_string(value);
  const std::size_t first = value < 0 ? 1 : 0;
  for (std::size_t end = text.size(); end > first + 3; end -= 3) text.insert(end - 3, 1, ',');
  return text;
}

namespace {

bool is_fraction(const std::string& measure) {
  return measure != "loss" && measure != "perplexity" && measure != "mean squared error";
}

}  // namespace

std::string test_metric_of(const std::vector<RunSummary>& runs) {
  std::string metric;
  for (const RunSummary& run : runs) {
    if (run.num_test_samples == 0) continue;
    if (!metric.empty() && run.test_metric != metric) return "accuracy";
    metric = run.test_metric;
  }
  return metric.empty() ? "accuracy" : metric;
}

std::vector<std::string> other_measures(const std::vector<RunSummary>& runs) {
  std::vector<std::string> names;
  for (const RunSummary& run : runs)
    for (const NamedValue& measure : run.test_others)
      if (std::ranges::find(names, measure.name) == names.end()) names.push_back(measure.name);
  return names;
}

std::string measure_heading(const std::string& name) { return is_fraction(name) ? name + " [%]" : name; }

std::string measure_number(const NamedValue& measure) {
  if (is_fraction(measure.name)) return fmt::format("{:.1f}", 100 * measure.value);
  return measure.value < 1e6 ? fmt::format("{:.3f}", measure.value) : fmt::format("{:.3g}", measure.value);
}

std::string other_measure(const RunSummary& run, const std::string& name) {
  const auto found = std::ranges::find(run.test_others, name, &NamedValue::name);
  return found == run.test_others.end() ? "" : measure_number(*found);
}

Nanoseconds total_transformation_ns(const RunSummary& run) {
  Nanoseconds total = 0;
  for (const PhaseSummary& phase : run.phases) total += phase.transformation_ns;
  return total;
}

Bytes peak_memory_bytes(const RunSummary& run) {
  Bytes peak = 0;
  for (const PhaseSummary& phase : run.phases) {
    for (const Bytes bytes : phase.measured_peak_memory_bytes) peak = std::max(peak, bytes);
  }
  return peak;
}

}  // namespace frostpipe
