#pragma once
#include "executor/loading/dataset.h"

namespace frostpipe {

/// The numbers from `begin` to `end`.
std::vector<int> numbers(int begin, int end);

/// Tests on the samples from `num_train` on, if there is a file to test on; else on a part of the others, by the seed:
/// of each label in proportion, or of all alike. Throws InvalidInput where that leaves nothing to train on.
void hold_out_by_label(const DataSource& source, int num_train, Dataset& dataset);
void hold_out_of_all(const DataSource& source, int num_train, Dataset& dataset);
/// Held out are whole contexts of questions, so that no text is both learned from and tested on.
void hold_out_by_context(const DataSource& source, int num_train_questions, Dataset& dataset);

}  // namespace frostpipe
