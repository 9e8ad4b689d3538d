#include "executor/training/evaluation/entity_scores.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <span>

#include "executor/training/evaluation/label_scores.h"

namespace frostpipe {
namespace {

constexpr const char* kOutside = "O";

/// Returns the predicted label of each word of a sentence. `answer` has class and probability of each token.
std::vector<std::string> predicted_labels_of(const Dataset& dataset, int sample, std::span<const double> answer) {
  std::vector<std::string> labels;
  for (const int token : dataset.first_tokens[sample])
    labels.push_back(token < 0 ? kOutside : dataset.words.label_names[static_cast<std::size_t>(answer[2 * token])]);
  return labels;
}

std::vector<std::string> labels_of(const Dataset& dataset, int sample) {
  std::vector<std::string> labels;
  for (const int label : dataset.words.sentences[sample].labels) labels.push_back(dataset.words.label_names[label]);
  return labels;
}

/// The counts of entities by kind.
using CountsOfKinds = std::map<std::string, LabelCounts>;

/// Compares the entities of a sentence, both ascending, and adds them to the counts of their kinds.
Matches matches_of(const std::vector<Entity>& labelled, const std::vector<Entity>& predicted, CountsOfKinds& kinds) {
  std::vector<Entity> both;
  std::ranges::set_intersection(labelled, predicted, std::back_inserter(both));
  for (const Entity& one : labelled) ++kinds[one.kind].count;
  for (const Entity& one : predicted) ++kinds[one.kind].predicted;
  for (const Entity& one : both) ++kinds[one.kind].hits;
  return {static_cast<int>(labelled.size()), static_cast<int>(predicted.size()), static_cast<int>(both.size())};
}

/// Returns each word as an entity whose kind is its label.
std::vector<Entity> words_as_entities(const std::vector<std::string>& labels) {
  std::vector<Entity> words;
  for (int word = 0; word < static_cast<int>(labels.size()); ++word) words.push_back({labels[word], word, word});
  std::ranges::sort(words);
  return words;
}

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

Matches sum_of(const std::vector<Matches>& all) {
  Matches sum;
  for (const Matches& one : all) {
    sum.labelled += one.labelled;
    sum.predicted += one.predicted;
    sum.hits += one.hits;
  }
  return sum;
}

}  // namespace

bool is_entity_label(const std::string& label) {
  return label == kOutside || (label.size() > 2 && label[1] == '-' && std::string("BIES").find(label[0]) < 4);
}

std::vector<Entity> entities_of(const std::vector<std::string>& labels) {
  std::vector<Entity> entities;
  char before = 'O';  // the previous label's letter: B, I, E, S or O
  std::string kind_before;
  for (int word = 0; word < static_cast<int>(labels.size()); ++word) {
    const std::string& label = labels[word];
    const char place = label.front();
    const std::string kind = place == 'O' ? "" : label.substr(2);
    const bool goes_on = before != 'O' && before != 'E' && before != 'S' && place != 'O' && place != 'B' &&
                         place != 'S' && kind == kind_before;
    if (goes_on)
      entities.back().last = word;
    else if (place != 'O')
      entities.push_back({kind, word, word});
    before = place;
    kind_before = kind;
  }
  std::ranges::sort(entities);
  return entities;
}

Score score_of_words(const Dataset& dataset, const std::vector<int>& samples, const std::vector<double>& answers) {
  const std::vector<std::size_t> begins = answer_begins(*dataset.samples, samples, dataset.answer_shape);
  const std::vector<std::string>& names = dataset.words.label_names;
  const bool are_entities = std::ranges::all_of(names, is_entity_label);
  const auto things_in = [&](const std::vector<std::string>& labels) {
    return are_entities ? entities_of(labels) : words_as_entities(labels);
  };
  CountsOfKinds kinds, labels;
  std::vector<Matches> of_sentences, of_words;
  bool is_labelled = false;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::vector<std::string> labelled = labels_of(dataset, samples[i]),
                                   predicted =
                                       predicted_labels_of(dataset, samples[i], std::span(answers).subspan(begins[i]));
    is_labelled = is_labelled || !labelled.empty();
    of_sentences.push_back(matches_of(things_in(labelled), things_in(predicted), kinds));
    of_words.push_back(matches_of(words_as_entities(labelled), words_as_entities(predicted), labels));
  }
  Score score;
  for (auto& [kind, counts] : kinds) {
    counts.label = kind;
    score.of_labels.push_back(counts);
  }
  if (!is_labelled) return score;
  const Matches entities = sum_of(of_sentences), words = sum_of(of_words);
  // As many words are labelled as are predicted, so the F1 of words is the fraction of right ones.
  const F1 f1 = f1_of(are_entities ? of_sentences : of_words);
  score.metric = are_entities ? "entity F1" : "accuracy";
  score.value = f1.value;
  score.standard_error = f1.standard_error;
  if (are_entities)
    score.others = {{"precision", share(entities.hits, entities.predicted)},
                    {"recall", share(entities.hits, entities.labelled)},
                    {"accuracy of words", share(words.hits, words.labelled)}};
  return score;
}

std::string predictions_conll(const Dataset& dataset, const std::vector<double>& answers) {
  std::string lines;
  std::size_t begin = 0;
  for (int sample = 0; sample < dataset.samples->size(); ++sample) {
    const std::vector<std::string> labelled = labels_of(dataset, sample),
                                   predicted = predicted_labels_of(dataset, sample, std::span(answers).subspan(begin));
    const std::vector<std::string>& words = dataset.words.sentences[sample].words;
    for (std::size_t word = 0; word < words.size(); ++word)
      lines += words[word] + "\t" + (labelled.empty() ? "" : labelled[word] + "\t") + predicted[word] + "\n";
    lines += "\n";
    begin += static_cast<std::size_t>(dataset.answer_shape.size(dataset.samples->tokens(sample)));
  }
  return lines;
}

}  // namespace frostpipe
