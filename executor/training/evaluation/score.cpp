#include "executor/training/evaluation/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/read_table.h"

namespace frostpipe {
namespace {

double error_of_share(double share, double count) { return std::sqrt(share * (1 - share) / std::max(1.0, count)); }

Score score_of_classes(const Dataset& dataset, const std::vector<int>& samples, const std::vector<double>& answers) {
  Score score;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    score.predictions.push_back(static_cast<int>(answers[2 * i]));
    score.probabilities.push_back(answers[2 * i + 1]);
  }
  if (dataset.labels.empty()) return score;
  score.metric = "accuracy";
  int correct = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    score.labels.push_back(dataset.labels[samples[i]]);
    correct += score.labels[i] == score.predictions[i];
  }
  const auto count = static_cast<double>(std::max<std::size_t>(1, samples.size()));
  score.value = correct / count;
  score.standard_error = error_of_share(score.value, count);
  return score;
}

Score score_of_answers(const Dataset& dataset, const std::vector<int>& samples, const std::vector<double>& answers) {
  // Only the questions of these samples count.
  std::set<int> asked;
  for (const int sample : samples) asked.insert(dataset.windows[sample].question);
  QuestionSet set{.contexts = dataset.questions.contexts, .questions = {}};
  for (const int question : asked) set.questions.push_back(dataset.questions.questions[question]);
  const Predictions predictions = predictions_of(dataset, samples, answers);
  const QuestionScores scores = scores_of(set, predictions);
  double squares = 0;
  for (const Question& question : set.questions) {
    const auto found = predictions.find(question.id);
    const double deviation =
        (found == predictions.end() ? 0 : f1_score(found->second, question.answers)) - scores.f1 / 100;
    squares += deviation * deviation;
  }
  Score score{.metric = "F1", .value = scores.f1 / 100};
  score.standard_error = std::sqrt(squares) / std::max(1, scores.count);
  score.others = {{"exact match", scores.exact_match / 100}};
  return score;
}

Score score_of_texts(const std::vector<double>& answers) {
  double loss = 0, num_predicted = 0, hits = 0;
  for (std::size_t i = 0; i < answers.size(); i += 3) {
    loss += answers[i] * answers[i + 1];
    num_predicted += answers[i + 1];
    hits += answers[i + 2];
  }
  const double count = std::max(1.0, num_predicted);
  Score score{.metric = "next-token accuracy", .value = hits / count};
  score.standard_error = error_of_share(score.value, count);
  score.others = {{"loss", loss / count}, {"perplexity", std::exp(loss / count)}};
  return score;
}

}  // namespace

Score score_of(const Dataset& dataset, const std::vector<int>& samples, const std::vector<double>& answers) {
  switch (dataset.task) {
    case Task::question_answering:
      return score_of_answers(dataset, samples, answers);
    case Task::causal_language_modeling:
      return score_of_texts(answers);
    default:
      return score_of_classes(dataset, samples, answers);
  }
}

Predictions predictions_of(const Dataset& dataset, const std::vector<int>& samples,
                           const std::vector<double>& answers) {
  std::vector<SpanScore> spans;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (answers[3 * i] < 0) continue;
    spans.push_back({.window = samples[i],
                     .start = static_cast<int>(answers[3 * i]),
                     .end = static_cast<int>(answers[3 * i + 1]),
                     .score = answers[3 * i + 2]});
  }
  return predictions_of(dataset.questions, dataset.windows, spans);
}

std::string predictions_csv(const Dataset& data, const Score& score) {
  const bool has_labels = !score.labels.empty();
  std::vector<std::string> header{data.task == Task::image_classification ? "picture" : "text", "predicted",
                                  "probability"};
  if (has_labels) header.insert(header.begin() + 1, "label");
  std::string csv = csv_line(header);
  for (std::size_t i = 0; i < data.items.size(); ++i) {
    std::vector<std::string> fields{data.items[i], data.label_names[score.predictions[i]],
                                    fmt::format("{:.6f}", score.probabilities[i])};
    if (has_labels) fields.insert(fields.begin() + 1, data.label_names[score.labels[i]]);
    csv += csv_line(fields);
  }
  return csv;
}

std::string completion_line(const Completed& completed) {
  nlohmann::ordered_json line{{"prompt", completed.prompt}, {"completion", completed.completion}};
  if (!completed.expected.empty()) line["expected"] = completed.expected;
  return line.dump() + "\n";
}

}  // namespace frostpipe
