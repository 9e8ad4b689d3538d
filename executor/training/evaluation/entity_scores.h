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

/// Returns whether a label is O or that of an entity's word: B-PER (the first), I-PER (a middle one), E-PER (the last)
/// or S-PER (the only one).
bool is_entity_label(const std::string& label);

/// Returns the entities that the labels of a sentence's words describe, ascending, by the rules of seqeval, which are
/// those of CoNLL's script. All labels must be entity labels. An entity begins at a B or S, at the label after an E, S
/// or O (unless it is O), and where the kind changes. It ends before the next entity, before an O, and with an E or S.
/// So I-PER after O begins an entity.
std::vector<Entity> entities_of(const std::vector<std::string>& labels);

/// Implements score_of() for words with labels. If all labels are entity labels, the score is the F1 of entities; an
/// entity is right if both its kind and its words are. Otherwise the score is the fraction of words whose label is
/// right. The prediction for a word that is cut off is O.
Score score_of_words(const Dataset& dataset, const std::vector<int>& samples, const std::vector<double>& answers);

/// Implements predictions_file() for words with labels. Returns columns as in CoNLL, separated by tabs: word, label if
/// the data have labels, predicted label. An empty line follows each sentence.
std::string predictions_conll(const Dataset& dataset, const std::vector<double>& answers);

}  // namespace frostpipe
