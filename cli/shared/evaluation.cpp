#include "cli/shared/evaluation.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json_text.h"
#include "cli/shared/common_options.h"
#include "cli/shared/output.h"
#include "cli/shared/progress.h"
#include "cli/shared/report_words.h"
#include "cli/shared/run_tables.h"
#include "cli/shared/table.h"

namespace frostpipe {
namespace {

std::string percent(int part, int whole) { return whole > 0 ? fmt::format("{:.1f}", 100.0 * part / whole) : "-"; }

std::string figures(const Evaluation& evaluation) {
  const std::string completed = plural(evaluation.num_completions, "completion");
  if (evaluation.num_samples == 0) return fmt::format("{}, without answers to compare with\n", completed);
  if (evaluation.metric.empty())
    return fmt::format("{} without labels to compare with, {:.1f} samples/s\n",
                       plural(evaluation.num_samples, "sample"), evaluation.samples_per_second);
  const std::string samples = evaluation.num_questions > 0
                                  ? fmt::format("{} in {}", plural(evaluation.num_questions, "question"),
                                                plural(evaluation.num_samples, "window"))
                                  : plural(evaluation.num_samples, "sample");
  std::string text = fmt::format("{}: {:.1f} % +- {:.1f} (standard error, {})", evaluation.metric,
                                 100 * evaluation.value, 100 * evaluation.standard_error, samples);
  for (const NamedValue& other : evaluation.others) text += ", " + measure_text(other);
  if (evaluation.num_completions > 0) text += ", " + completed;
  return text + fmt::format(", {:.1f} samples/s\n", evaluation.samples_per_second);
}

std::string evaluation_text(const Evaluation& evaluation) {
  if (evaluation.labels.empty()) return figures(evaluation);
  using enum Table::Align;
  if (evaluation.metric.empty()) {
    Table table({{"label", left}, {"predicted", right}});
    for (const LabelCounts& one : evaluation.labels) table.add_row({one.label, std::to_string(one.predicted)});
    return figures(evaluation) + "\n" + table.to_string();
  }
  Table table({{"label", left}, {"count", right}, {"recall [%]", right}, {"precision [%]", right}});
  for (const LabelCounts& one : evaluation.labels)
    table.add_row(
        {one.label, std::to_string(one.count), percent(one.hits, one.count), percent(one.hits, one.predicted)});
  return figures(evaluation) + "\n" + table.to_string();
}

std::string evaluation_json(const Evaluation& evaluation) {
  nlohmann::ordered_json json = {
      {"format", "frostpipe.evaluation"}, {"version", 1}, {"num_samples", evaluation.num_samples}};
  if (evaluation.num_questions > 0) json["num_questions"] = evaluation.num_questions;
  if (evaluation.num_completions > 0) json["num_completions"] = evaluation.num_completions;
  if (!evaluation.metric.empty()) {
    json["metric"] = evaluation.metric;
    json["value"] = evaluation.value;
    json["standard_error"] = evaluation.standard_error;
  }
  for (const NamedValue& other : evaluation.others) {
    std::string key = other.name;
    std::ranges::replace(key, ' ', '_');
    json[key] = other.value;
  }
  json["samples_per_second"] = evaluation.samples_per_second;
  json["labels"] = nlohmann::ordered_json::array();
  for (const LabelCounts& one : evaluation.labels) {
    nlohmann::ordered_json label = {{"label", one.label}, {"predicted", one.predicted}};
    if (!evaluation.metric.empty()) {
      label["count"] = one.count;
      label["hits"] = one.hits;
    }
    json["labels"].push_back(label);
  }
  return json_text(json, 2) + "\n";
}

}  // namespace

void add_evaluation_options(CLI::App& command, EvaluationOptions& options, const EvaluationTexts& texts) {
  command
      .add_option("--model", options.evaluate.model, "Folder of the model to score, which train has written: RUN/model")
      ->required()
      ->type_name("FOLDER");
  command.add_option("--data", options.evaluate.data, texts.data)->required()->type_name("DATA");
  command.add_option("--predictions", options.predictions, texts.predictions)->type_name("FILE");
  add_count_option(command, "--batch-size", options.evaluate.batch_size, "Number of samples to compute at a time");
  add_format_option(command, options.format);
}

int print_evaluation(EvaluationOptions& options, Evaluation (*score)(const EvaluateOptions&, const Progress&)) {
  options.evaluate.predicts = !options.predictions.empty();
  if (options.evaluate.predicts) require_writable(options.predictions);  // fails before the work, not after it
  Evaluation evaluation;
  {
    ProgressDisplay display("evaluate");
    evaluation =
        score(options.evaluate, [&](double fraction, const std::string& line) { display.show(fraction, line); });
  }
  for (const std::string& note : evaluation.notes) print_note(note);
  print_result(options.format == "json" ? evaluation_json(evaluation) : evaluation_text(evaluation));
  if (!options.predictions.empty()) write_named_file(options.predictions, evaluation.predictions_file);
  return 0;
}

}  // namespace frostpipe
