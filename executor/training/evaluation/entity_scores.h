#pragma once
#include <compare>
#include <string>
#include <vector>

#include "executor/training/evaluation/score.h"

namespace frostpipe {

/// An entity in a sentence: its kind, and the numbers of its first and last word.
struct Entity {
  std::string kind;
  int first = 0, last = 0;
  auto operator<=>(const Entity&) const = default;
};

/// Returns whether a label is O or an entity's, such as B-PER (begins), I-PER (continues), E-PER (ends) or S-PER (a
/// single word).
bool is_entity_label(const std::string& label);

/// Returns the entities that the labels of a sentence's words mean, ascending, by the rules of seqeval, and so of
/// CoNLL's own script. An entity begins at a B or S, at the label after an E, S or O (unless it is O), and where the
/// kind changes. It ends before the next entity, before an O, and with an E or S. So I-PER after O begins an entity.
std::vector<Entity> entities_of(const std::vector<std::string>& labels);

/// Implements score_of() for words with labels. If all labels are entity labels, the score is the F1 of entities, of
/// which one is right if its kind and its words are; otherwise it is the fraction of words whose label is right. The
/// prediction for a word that is cut off is O.
Score score_of_words(const Dataset& dataset, const std::vector<int>& samples, const std::vector<double>& answers);

/// Implements predictions_file() for words with labels. Returns columns as in CoNLL, separated by tabs: word, label if
/// the data have labels, predicted label. An empty line follows each sentence.
std::string predictions_conll(const Dataset& dataset, const std::vector<double>& answers);

}  // namespace frostpipe
