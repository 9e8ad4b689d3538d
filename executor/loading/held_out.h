#pragma once
#include "executor/loading/dataset.h"

namespace frostpipe {

/// Returns the whole numbers in [begin, end).
std::vector<int> numbers(int begin, int end);

/// These set the dataset's split. If there is a file to test on, its samples, from number `num_train` on, are the test
/// samples. Otherwise the fraction source.held_out of the samples, chosen at random by the seed, is held out: in
/// proportion for every label, or of all samples alike. They throw InvalidInput if there are too few samples to hold
/// one out and to train on another.
void hold_out_by_label(const DataSource& source, int num_train, Dataset& dataset);
void hold_out_of_all(const DataSource& source, int num_train, Dataset& dataset);
/// Does the same for questions, and holds out whole contexts, so that no text is both trained and tested on.
void hold_out_by_context(const DataSource& source, int num_train_questions, Dataset& dataset);

}  // namespace frostpipe
