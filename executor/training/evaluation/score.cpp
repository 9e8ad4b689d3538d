#include "executor/training/evaluation/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "executor/training/evaluation/entity_scores.h"
#include "executor/training/evaluation/label_scores.h"

namespace frostpipe {
namespace {

double error_of_share(double share, double count) { return std::sqrt(share * (1 - share) / std::max(1.0, count)); }

Score score_of_classes(const Dataset& dataset, const std::vector<int>& samples, const std::vector<double>& answers) {
  Score score;
  for (const std::string& name : dataset.label_names) score.of_labels.push_back({.label = name});
  for (std::size_t i = 0; i < samples.size(); ++i) {
    score.predictions.push_back(static_cast<int>(answers[2 * i]));
    ++score.of_labels.at(score.predictions.back()).predicted;
  }
  if (dataset.labels.empty()) return score;
  score.metric = "accuracy";
  int correct = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    score.labels.push_back(dataset.labels[samples[i]]);
    LabelCounts& of_label = score.of_labels.at(score.labels.back());
    ++of_label.count;
    if (score.labels[i] != score.predictions[i]) continue;
    ++of_label.hits;
    ++correct;
  }
  const auto count = static_cast<double>(std::max<std::size_t>(1, samples.size()));
  score.value = correct / count;
  score.standard_error = error_of_share(score.value, count);
  return score;
}

Score score_of_answers(const Dataset& dataset, const std::vector<int>& samples, const std::vector<double>& answers) {
  // Only the questions that these samples ask count.
  std::set<int> asked;
  for (const int sample : samples) asked.insert(dataset.windows[sample].question);
  QuestionSet set{.contexts = dataset.questions.contexts, .questions = {}}, answerable = set, unanswerable = set;
  for (const int number : asked) {
    const Question& question = dataset.questions.questions[number];
    set.questions.push_back(question);
    (question.answers.empty() ? unanswerable : answerable).questions.push_back(question);
  }
  const Predictions predictions = predictions_of(dataset, samples, answers);
  const QuestionScores scores = scores_of(set, predictions);
  double squares = 0;
  for (const Question& question : set.questions) {
    const double deviation =
        scores_of({.contexts = {}, .questions = {question}}, predictions).f1 / 100 - scores.f1 / 100;
    squares += deviation * deviation;
  }
  Score score{.metric = "F1", .value = scores.f1 / 100};
  score.standard_error = std::sqrt(squares) / std::max(1, scores.count);
  score.others = {{"exact match", scores.exact_match / 100}};
  if (dataset.questions.has_unanswerable())
    for (const auto& [name, part] : {std::pair("answerable", &answerable), {"unanswerable", &unanswerable}}) {
      const QuestionScores of_part = scores_of(*part, predictions);
      score.others.push_back({fmt::format("F1 of {}", name), of_part.f1 / 100});
      score.others.push_back({fmt::format("exact match of {}", name), of_part.exact_match / 100});
    }
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
    case Task::token_classification:
      return score_of_words(dataset, samples, answers);
    default:
      break;
  }
  switch (dataset.problem_type) {
    case ProblemType::multi_label:
      return score_of_label_sets(dataset, samples, answers);
    case ProblemType::regression:
      return score_of_numbers(dataset, samples, answers);
    default:
      return score_of_classes(dataset, samples, answers);
  }
}

Evaluation evaluation_of(const Dataset& dataset, const std::vector<int>& samples, const std::vector<double>& answers,
                         double seconds) {
  const Score score = samples.empty() ? Score{} : score_of(dataset, samples, answers);
  return {.num_samples = static_cast<int>(samples.size()),
          .num_questions = static_cast<int>(dataset.questions.questions.size()),
          .metric = score.metric,
          .value = score.value,
          .standard_error = score.standard_error,
          .others = score.others,
          .samples_per_second = static_cast<double>(samples.size()) / seconds,
          .labels = score.of_labels,
          .notes = dataset.notes};
}

Predictions predictions_of(const Dataset& dataset, const std::vector<int>& samples,
                           const std::vector<double>& answers) {
  std::vector<SpanScore> spans;
  std::vector<NullScore> nulls;
  const bool may_have_none = dataset.questions.has_unanswerable();
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (may_have_none) nulls.push_back({samples[i], answers[4 * i + 3]});
    if (answers[4 * i] < 0) continue;
    spans.push_back({.window = samples[i],
                     .start = static_cast<int>(answers[4 * i]),
                     .end = static_cast<int>(answers[4 * i + 1]),
                     .score = answers[4 * i + 2]});
  }
  return predictions_of(dataset.questions, dataset.windows, spans, nulls);
}

std::string predictions_file(const Dataset& dataset, const std::vector<double>& answers) {
  if (dataset.task == Task::question_answering) {
    std::vector<int> all(dataset.samples->size());
    std::iota(all.begin(), all.end(), 0);
    return predictions_json(predictions_of(dataset, all, answers));
  }
  return dataset.task == Task::token_classification ? predictions_conll(dataset, answers)
                                                    : predictions_csv(dataset, answers);
}

std::string completion_line(const Completed& completed) {
  nlohmann::ordered_json line{{"prompt", completed.prompt}, {"completion", completed.completion}};
  if (!completed.expected.empty()) line["expected"] = completed.expected;
  return line.dump() + "\n";
}

}  // namespace frostpipe
