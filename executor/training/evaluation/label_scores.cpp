#include "executor/training/evaluation/label_scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/read_table.h"

namespace frostpipe {
namespace {

bool is_predicted(double probability) { return probability > 0.5; }

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) /
         static_cast<double>(std::max<std::size_t>(1, values.size()));
}

bool is_nan(double value) { return std::isnan(value); }

/// Returns the ranks of the values, from 0; equal values share their mean rank. No value may be NaN.
std::vector<double> ranks_of(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (std::size_t i = begin; i < end; ++i) ranks[order[i]] = static_cast<double>(begin + end - 1) / 2;
  }
  return ranks;
}

std::string shown_number(double number) { return fmt::format("{:.6g}", number); }

/// Returns the names of the labels whose value satisfies `is_set`, as a JSON list.
std::string list_of(const Dataset& dataset, std::span<const double> values, bool (*is_set)(double)) {
  nlohmann::json names = nlohmann::json::array();
  for (std::size_t label = 0; label < values.size(); ++label)
    if (is_set(values[label])) names.push_back(dataset.label_names[label]);
  return names.dump();
}

/// Returns the fields of a sample's row: its label if the data have labels, the predicted label, and probabilities.
std::vector<std::string> fields_of(const Dataset& dataset, int sample, std::span<const double> answer) {
  std::vector<std::string> fields;
  const auto label = [&] { return std::span<const double>(dataset.targets[sample]); };
  switch (dataset.problem_type) {
    case ProblemType::multi_label:
      if (!dataset.targets.empty()) fields.push_back(list_of(dataset, label(), is_predicted));
      fields.push_back(list_of(dataset, answer, is_predicted));
      for (const double probability : answer) fields.push_back(fmt::format("{:.6f}", probability));
      return fields;
    case ProblemType::regression:
      if (!dataset.targets.empty()) fields.push_back(shown_number(label().front()));
      fields.push_back(shown_number(answer.front()));
      return fields;
    default:
      if (!dataset.labels.empty()) fields.push_back(dataset.label_names[dataset.labels[sample]]);
      fields.push_back(dataset.label_names[static_cast<std::size_t>(answer[0])]);
      fields.push_back(fmt::format("{:.6f}", answer[1]));
      return fields;
  }
}

}  // namespace

F1 f1_of(std::span<const Matches> samples) {
  double both = 0, hits = 0;
  for (const Matches& of_sample : samples) {
    both += of_sample.labelled + of_sample.predicted;
    hits += of_sample.hits;
  }
  if (both == 0) return {};
  const double value = 2 * hits / both;
  double squares = 0;
  for (const Matches& of_sample : samples) {
    const double deviation = 2 * of_sample.hits - value * (of_sample.labelled + of_sample.predicted);
    squares += deviation * deviation;
  }
  return {value, std::sqrt(squares) / both};
}

double pearson_correlation(std::span<const double> a, std::span<const double> b) {
  const double mean_a = mean_of(a), mean_b = mean_of(b);
  double products = 0, squares_a = 0, squares_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    products += (a[i] - mean_a) * (b[i] - mean_b);
    squares_a += (a[i] - mean_a) * (a[i] - mean_a);
    squares_b += (b[i] - mean_b) * (b[i] - mean_b);
  }
  const double scale = std::sqrt(squares_a * squares_b);
  return scale == 0 ? 0 : std::clamp(products / scale, -1.0, 1.0);
}

double spearman_correlation(std::span<const double> a, std::span<const double> b) {
  if (std::ranges::any_of(a, is_nan) || std::ranges::any_of(b, is_nan)) return std::numeric_limits<double>::quiet_NaN();
  return pearson_correlation(ranks_of(a), ranks_of(b));
}

Score score_of_label_sets(const Dataset& dataset, const std::vector<int>& samples, const std::vector<double>& answers) {
  const std::size_t num_labels = dataset.label_names.size();
  Score score;
  for (const std::string& name : dataset.label_names) score.of_labels.push_back({.label = name});
  std::vector<Matches> matches(samples.size());
  int exact = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    for (std::size_t label = 0; label < num_labels; ++label) {
      const int predicted = is_predicted(answers[i * num_labels + label]);
      const int labelled = !dataset.targets.empty() && dataset.targets[samples[i]][label] == 1;
      LabelCounts& of_label = score.of_labels[label];
      of_label.count += labelled;
      of_label.predicted += predicted;
      of_label.hits += labelled * predicted;
      matches[i].labelled += labelled;
      matches[i].predicted += predicted;
      matches[i].hits += labelled * predicted;
    }
    exact += matches[i].hits == matches[i].labelled && matches[i].hits == matches[i].predicted;
  }
  if (dataset.targets.empty()) return score;
  const F1 f1 = f1_of(matches);
  score.metric = "micro F1";
  score.value = f1.value;
  score.standard_error = f1.standard_error;
  score.others = {{"exact match", exact / static_cast<double>(std::max<std::size_t>(1, samples.size()))}};
  return score;
}

Score score_of_numbers(const Dataset& dataset, const std::vector<int>& samples, const std::vector<double>& answers) {
  if (dataset.targets.empty()) return {};
  std::vector<double> numbers, squares;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    numbers.push_back(dataset.targets[samples[i]].front());
    squares.push_back((answers[i] - numbers[i]) * (answers[i] - numbers[i]));
  }
  Score score{.metric = "Pearson correlation", .value = pearson_correlation(answers, numbers)};
  const double count = static_cast<double>(std::max<std::size_t>(2, samples.size()));
  score.standard_error = (1 - score.value * score.value) / std::sqrt(count - 1);
  score.others = {{"Spearman correlation", spearman_correlation(answers, numbers)},
                  {"mean squared error", mean_of(squares)}};
  return score;
}

std::string predictions_csv(const Dataset& dataset, const std::vector<double>& answers) {
  const bool has_labels = !dataset.labels.empty() || !dataset.targets.empty();
  std::vector<std::string> header{dataset.task == Task::image_classification ? "picture" : "text"};
  if (has_labels) header.emplace_back("label");
  header.emplace_back("predicted");
  if (dataset.problem_type == ProblemType::single_label) header.emplace_back("probability");
  if (dataset.problem_type == ProblemType::multi_label)
    for (const std::string& name : dataset.label_names) header.push_back("probability of " + name);
  std::string csv = csv_line(header);
  const std::size_t size = dataset.items.empty() ? 0 : answers.size() / dataset.items.size();
  for (std::size_t i = 0; i < dataset.items.size(); ++i) {
    std::vector<std::string> fields =
        fields_of(dataset, static_cast<int>(i), std::span(answers).subspan(i * size, size));
    fields.insert(fields.begin(), dataset.items[i]);
    csv += csv_line(fields);
  }
  return csv;
}

}  // namespace frostpipe
