#pragma once
#include "executor/loading/dataset.h"

namespace frostpipe {

/// Returns the whole numbers in [begin, end).
std::vector<int> numbers(int begin, int end);

/// Set the dataset's split. If there is a file to test on, its samples, from number `num_train` on, are the test
/// samples. Otherwise a random part of the samples, chosen by the seed, is held out: in proportion for every label, or
/// of all samples alike. Throw InvalidInput if nothing would remain to train on.
void hold_out_by_label(const DataSource& source, int num_train, Dataset& dataset);
void hold_out_of_all(const DataSource& source, int num_train, Dataset& dataset);
/// Does the same for questions, and holds out whole contexts, so that no text is both trained and tested on.
void hold_out_by_context(const DataSource& source, int num_train_questions, Dataset& dataset);

}  // namespace frostpipe
