#pragma once
#include "executor/loading/dataset.h"

namespace frostpipe {

/// These implement load_dataset() and load_to_score() for texts with a label, with several labels, or with a number.
Dataset labelled_texts(const DataSource& source, const SampleOptions& options, ModelFolder& folder);
Dataset texts_to_score(const std::filesystem::path& data, const SampleOptions& options, ModelFolder& folder);

/// Returns the folder's labels. Throws InvalidInput unless the folder names its labels, each differently.
const std::vector<std::string>& labels_to_score(const ModelFolder& folder);

/// Returns the data's labels, in the folder's order if both have the same ones, since the folder's classifier can then
/// be used.
std::vector<std::string> in_order_of(const std::vector<std::string>& labels_of_folder,
                                     const std::vector<std::string>& labels_of_data);

/// Returns the largest number of tokens that a sample may have: options.max_tokens, or `usual` if it is 0, but at most
/// the model's positions.
int longest(const SampleOptions& options, const ModelFolder& folder, int usual = kMaxTokens);

ColumnNames columns_of(const SampleOptions& options);

/// Returns "FILE: KIND 3", the place of the sample with index `sample` among those of source.data, of which there are
/// `num_train`, and then of source.test_data.
std::string place_of(const DataSource& source, int num_train, int sample, const char* kind);

}  // namespace frostpipe
