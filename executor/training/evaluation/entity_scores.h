#pragma once
#include <compare>
#include <string>
#include <vector>

#include "executor/training/evaluation/score.h"

namespace frostpipe {

/// A name in a sentence: its kind, and the numbers of its first and last word.
struct Entity {
  std::string kind;
  int first = 0, last = 0;
  auto operator<=>(const Entity&) const = default;
};

/// Whether a label is O, or begins or goes on with an entity: B-PER, I-PER; also E- (its end) and S- (alone).
bool is_entity_label(const std::string& label);

/// The entities that the labels of a sentence's words tell, ascending, as seqeval (and so CoNLL's own script) reads
/// them: an entity begins at a B or S, at whatever follows an E or S, and where the kind changes or an O went before;
/// it ends before the next one, before an O, and with an E or S. So I-PER after O begins one.
std::vector<Entity> entities_of(const std::vector<std::string>& labels);

/// Parts of score_of and of predictions_file, of words with labels. Where all labels are entity labels, F1 of entities:
/// one is right whose kind and words are; else the share of words whose label is right. A word that is cut off is said
/// to be O.
Score score_of_words(const Dataset& dataset, const std::vector<int>& samples, const std::vector<double>& answers);

/// The columns of CoNLL, between tabs: word, label where there is one, predicted label; an empty line after each
/// sentence.
std::string predictions_conll(const Dataset& dataset, const std::vector<double>& answers);

}  // namespace frostpipe
