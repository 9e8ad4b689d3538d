#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

#include "executor/batches.h"
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

/// read_tsv and hold_out; errors of both name the file.
void read_and_split(const std::filesystem::path& data, double held_out, std::uint64_t seed, TextData& text, Split& split);

/// Texts longer than `max_tokens`, or than the model's positions, are cut. Throws InvalidInput, also where the folder's vocabulary has
/// more tokens than its config says.
Dataset load_dataset(const std::filesystem::path& data, const ModelFolder& folder, double held_out, std::uint64_t seed, int max_tokens);

/// The folder's tokenizer, checked against its config.
WordPiece tokenizer_of(const ModelFolder& folder);

}  // namespace frostpipe
