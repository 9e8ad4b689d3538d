#pragma once
#include "executor/loading/dataset.h"

namespace frostpipe {

/// These implement load_dataset() and load_to_score() for words with labels. A sample consists of the tokens of a
/// sentence's words; the label of a word is that of its first token, and the other tokens have none.
Dataset tagged_sentences(const DataSource& source, const SampleOptions& options, ModelFolder& folder);
Dataset sentences_to_score(const std::filesystem::path& data, const SampleOptions& options, ModelFolder& folder);

}  // namespace frostpipe
