#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

#include "executor/batches.h"
#include "executor/execute.h"
#include "executor/model_folder.h"
#include "executor/text_data.h"

namespace frostpipe {

/// Labelled texts, set apart for training and testing, as token ids of a model's vocabulary.
struct Dataset {
  TextData text;
  Split split;
  EncodedData encoded;
  std::vector<int> test_by_length;  // split.test, texts of similar length together: less padding
};

/// read_tsv, then hold_out or the test file, whose samples are numbered behind the data's; errors name the file.
void read_and_split(const DataSource& source, TextData& text, Split& split);

/// Texts longer than `max_tokens`, or than the model's positions, are cut. Throws InvalidInput, also where the folder's vocabulary has
/// more tokens than its config says.
Dataset load_dataset(const DataSource& source, const ModelFolder& folder, int max_tokens);

/// The folder's tokenizer, checked against its config.
WordPiece tokenizer_of(const ModelFolder& folder);

}  // namespace frostpipe
