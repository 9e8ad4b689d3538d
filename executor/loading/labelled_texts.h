#pragma once
#include "executor/loading/dataset.h"

namespace frostpipe {

/// Parts of load_dataset and load_to_score: texts with a label, with several, or with a number.
Dataset labelled_texts(const DataSource& source, const SampleOptions& options, ModelFolder& folder);
Dataset texts_to_score(const std::filesystem::path& data, const SampleOptions& options, ModelFolder& folder);

/// Labels of the folder that data can be compared with.
const std::vector<std::string>& labels_to_score(const ModelFolder& folder);

/// The data's labels in the folder's order where both have the same ones: its classifier is of use then.
std::vector<std::string> in_order_of(const std::vector<std::string>& labels_of_folder,
                                     const std::vector<std::string>& labels_of_data);

/// Tokens that a sample may have.
int longest(const SampleOptions& options, const ModelFolder& folder);

ColumnNames columns_of(const SampleOptions& options);

}  // namespace frostpipe
