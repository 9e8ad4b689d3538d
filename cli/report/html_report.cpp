#include "cli/report/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "cli/report/html_page.h"
#include "cli/report/report_charts.h"
#include "cli/report/report_tables.h"
#include "cli/report/svg.h"
#include "cli/shared/one_process_text.h"
#include "cli/shared/report_words.h"
#include "cli/shared/run_settings.h"
#include "cli/shared/run_tables.h"
#include "cli/shared/shape_text.h"
#include "plan/run_length.h"

namespace frostpipe {
namespace {

/// Returns how long the run was. The rehearsal of a net has no data, and so no epochs.
std::string length_of(const RunSummary& run) {
  const std::string steps = plural(run.num_steps, "step");
  return run.is_emulated && run.net ? steps : fmt::format("{} ({})", epochs_text(run.epochs), steps);
}

std::string samples_of(const RunSummary& run) {
  if (run.is_emulated && run.net) return "no data";
  return fmt::format("{} training and {} test samples", grouped(run.num_train_samples), grouped(run.num_test_samples));
}

std::string labels_of(const RunSummary& run) {
  return run.label_names.empty() ? "" : plural(static_cast<long long>(run.label_names.size()), "label");
}

/// Returns the figures that say what was trained. One that is not the same in all runs has the values of all.
std::string run_facts_text(const Comparison& comparison) {
  const auto& runs = comparison.runs;
  const auto n = static_cast<long long>(runs.size());
  std::vector<std::string> parts = {
      plural(n, std::ranges::all_of(runs, &RunSummary::is_emulated) ? "rehearsal" : "training run"),
      distinct_texts(runs, [](const RunSummary& run) { return plural(run.world_size, "rank"); }),
      distinct_texts(runs, [](const RunSummary& run) { return fmt::format("mini-batch {}", run.global_batch_size); }),
      distinct_texts(runs, length_of), distinct_texts(runs, samples_of)};
  if (const std::string labels = distinct_texts(runs, labels_of); !labels.empty()) parts.push_back(labels);
  return fmt::format("{}", fmt::join(parts, " · "));
}

struct WorstPrediction {
  double error = 0;  // as a fraction of the measured time
  const RunSummary* run = nullptr;
  const PhaseSummary* phase = nullptr;
};

/// Returns the largest error of a predicted iteration time over all phases. Short phases count too; the page says how
/// short they are.
std::optional<WorstPrediction> worst_prediction(const Comparison& comparison) {
  std::optional<WorstPrediction> worst;
  for (const RunSummary& run : comparison.runs) {
    for (const PhaseSummary& phase : run.phases) {
      if (phase.predicted_iteration_ns <= 0 || phase.measured_iteration_ns <= 0) continue;
      const double error = std::abs(static_cast<double>(phase.predicted_iteration_ns - phase.measured_iteration_ns)) /
                           static_cast<double>(phase.measured_iteration_ns);
      if (!worst || error > worst->error) worst = {.error = error, .run = &run, .phase = &phase};
    }
  }
  return worst;
}

std::string runs_hint(const Comparison& comparison) {
  const std::string sentence = settings_sentence(comparison.runs);
  return escape_html(sentence) + (sentence.empty() ? "" : " ") +
         (std::ranges::any_of(comparison.runs, &RunSummary::is_emulated)
              ? "A rehearsal: emulated devices waited in place of computing, so times are of the plan, and nothing was "
                "learned."
              : "Every figure is of this one run on this machine.");
}

/// Returns the warning that stands below the page's headline; empty for runs that can be compared.
std::string warning(const Comparison& comparison) {
  return differing_settings(comparison.runs).empty() ? "" : settings_sentence(comparison.runs);
}

std::string tiles(const Comparison& comparison) {
  const RunSummary& run = comparison.runs.back();
  std::string html = "<div class=\"tiles\">\n";
  for (const Speedup& speedup : comparison.speedups) {
    html += html_tile(fmt::format("{:.2f}×", speedup.factor),
                      fmt::format("{} against {}{}<br>"
                                  "10–90 % {:.2f}–{:.2f}",
                                  escape_html(speedup.run), escape_html(speedup.baseline),
                                  fastest_clause(comparison, speedup.baseline), speedup.low, speedup.high));
  }
  html += html_tile(fmt::format("{:.1f}", run.samples_per_second),
                    fmt::format("samples per second, {}", escape_html(run.name)));
  if (run.num_test_samples > 0)
    html += html_tile(fmt::format("{:.1f} %", 100 * run.test_accuracy),
                      fmt::format("test {}, {}<br>standard error {:.1f}", escape_html(run.test_metric),
                                  escape_html(run.name), 100 * run.test_accuracy_standard_error));
  if (const auto worst = worst_prediction(comparison)) {
    html += html_tile(
        fmt::format("{:.1f} %", 100 * worst->error),
        fmt::format("largest error of a predicted iteration time, of all phases<br>{} from step {}, {} long",
                    escape_html(worst->run->name), worst->phase->from_step, plural(worst->phase->num_steps, "step")));
  }
  return html + "</div>\n";
}

constexpr std::string_view kPipelineWords =
    "<dt>stages × replicas</dt><dd>Pipeline length times copies of the pipeline; each stage holds a range of layers "
    "(the "
    "partition), each replica works on its share of the mini-batch.</dd>"
    "<dt>frozen blocks</dt><dd>Transformer blocks, counted from the input, that no longer learn; the embedding is "
    "frozen with the first. They run forward only.</dd>";
constexpr std::string_view kNetWords =
    "<dt>devices</dt><dd>The devices that share the operators of a net's iteration, as an operator plan says: each "
    "operator is computed by one of them, or by several, each for its own samples of the mini-batch.</dd>"
    "<dt>frozen layers</dt><dd>Layers of a net, counted from the input, that no longer learn. They run forward "
    "only.</dd>";

std::string meanings(const Comparison& comparison) {
  const std::string unit = frozen_unit(comparison.runs);
  return fmt::format(
      "<details class=\"card\"><summary>What the words mean</summary><dl>"
      "<dt>iteration time</dt><dd>One optimizer step: forward and backward of the whole mini-batch, exchange of "
      "gradients, and update. Measured: the median over the phase's steps. Predicted: simulated from a profile taken "
      "before the run, for the layouts that the run really used.</dd>"
      "{}{}"
      "<dt>change of layout</dt><dd>Freezing, moving layers and building new groups between two phases; it is part "
      "of the throughput.</dd>"
      "<dt>throughput</dt><dd>Training samples divided by the wall time of the training loop, changes of layout and "
      "freeze decisions included; start and evaluation are given apart.</dd>"
      "<dt>peak memory</dt><dd>Largest sum of live tensor bytes of a rank: weights, gradients, optimizer state, "
      "kept activations, work space.</dd>"
      "<dt>ranges</dt><dd>A speedup's range comes from resampling this run's own step times: it is not the spread "
      "over machines or days. Accuracies are compared item by item, between runs "
      "that were tested on the same items.</dd></dl></details>\n",
      unit == "layers" ? "" : kPipelineWords, unit == "blocks" ? "" : kNetWords);
}

/// Returns the seed, which the rehearsal of a net does not have.
std::string seed_of(const RunSummary& run) { return run.is_emulated && run.net ? "none" : std::to_string(run.seed); }

std::string footer(const HtmlReportInput& input) {
  const auto& runs = input.comparison.runs;
  return fmt::format("<footer>frostpipe {} · from {} · seed {} · plan method {} · freezing by {}</footer>\n",
                     FROSTPIPE_VERSION, escape_html(input.source), distinct_texts(runs, seed_of),
                     escape_html(distinct_texts(runs, [](const RunSummary& run) { return run.method; })),
                     escape_html(distinct_texts(runs, [](const RunSummary& run) { return run.freeze; })));
}

/// Returns the freezing decisions of the last run.
std::string decisions(const Comparison& comparison) {
  std::string html;
  for (const Decision& decision : comparison.runs.back().decisions) {
    html += fmt::format(
        "<details><summary>step {}: {} frozen</summary><div class=\"scroll\"><pre>{}</pre></div></details>\n",
        decision.step, plural(decision.frozen_blocks, "block"), escape_html(decision.explanation));
  }
  return html;
}

std::string recoveries(const Comparison& comparison) {
  std::string text;
  for (const RunSummary& run : comparison.runs) {
    if (!run.recoveries.empty()) text += run.name + "\n" + recoveries_text(run);
  }
  return text.empty() ? "" : "<div class=\"scroll\"><pre>" + escape_html(text) + "</pre></div>";
}

}  // namespace

std::string html_report(const HtmlReportInput& input) {
  const Comparison& comparison = input.comparison;
  if (comparison.runs.empty()) throw InvalidInput(input.source, "runs: at least one", "none");
  const std::string answer = escape_html(headline(comparison));

  std::string html;
  for (const std::string& text :
       {warning(comparison), one_process_line(comparison.runs.back()), accuracy_sentence(comparison)})
    if (!text.empty()) html += "<p class=\"muted\">" + escape_html(text) + "</p>\n";
  html += "</header>\n";
  html += tiles(comparison);
  html += html_card("Runs", runs_hint(comparison), runs_table(comparison));
  html += html_card(
      "Accuracy, item by item",
      "Difference in points over the same test items; the bar is the 95 % interval of the paired differences.",
      accuracy_intervals(comparison));
  html += html_card("Prediction and measurement", "A row per phase: a stretch of the run with one layout.",
                    phases_table(comparison));
  html += html_card("Decisions",
                    "Layouts that were compared at each freeze, and when the cache pays; * was chosen. Times are the "
                    "planner's.",
                    decisions(comparison));
  html += html_card("Lost ranks, interruptions and undone freezes",
                    "Steps at which a run went back to an earlier one, the reason, and the time that it took.",
                    recoveries(comparison));
  html += html_card("Over the run", "How far each run was frozen, how fast it went and how well it learned.",
                    run_charts(comparison));
  html += html_card("One iteration of each phase",
                    "What each rank did, and when; the measured iteration is the one whose time is the phase's median.",
                    phase_timelines(comparison));
  html += html_card(
      "Peak memory",
      input.cluster ? "MiB of live tensors per rank: measured (bar), predicted (line), limit (dashed). A bar beyond "
                      "the limit belongs to a run that was made without it."
                    : "MiB of live tensors per rank: measured (bar) and predicted (line).",
      memory_bars(comparison, input.cluster));
  html += html_card("What if", "Predicted from the profile; no run measured it.", what_ifs_table(comparison));
  html += html_card("Labels", "Recall and precision on the test set.", labels_table(comparison));
  html += meanings(comparison) + footer(input);
  return html_page("frostpipe report", "frostpipe report · " + escape_html(run_facts_text(comparison)), answer, html);
}

}  // namespace frostpipe
