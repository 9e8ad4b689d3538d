#pragma once
// Implementation header: include it from .cpp files only.
#include <filesystem>

#include "executor/data/tokenizers/tokenizer_files.h"

namespace frostpipe {

/// Returns the equivalent of a tokenizer.json, and the special tokens' roles, for a BERT model with this vocab.txt,
/// whose line n (from 0) is token n. Throws InvalidInput that names file, line and rule if a line is empty or a
/// duplicate, or if [UNK], [CLS] or [SEP] is missing.
TokenizerFiles bert_files(const std::filesystem::path& vocabulary);

/// Does the same for a model with a vocab.json and merges.txt: RoBERTa's if the vocabulary has <s> and </s>, else
/// GPT-2's. Throws InvalidInput that names a file if it is not readable or the vocabulary of GPT-2's has no
/// <|endoftext|>.
TokenizerFiles byte_level_files(const std::filesystem::path& vocabulary, const std::filesystem::path& merges);

/// Reads a file that holds a JSON object. Throws InvalidInput that names the file if it cannot be read, is not a JSON
/// object, or is nested too deeply.
nlohmann::json read_json_object(const std::filesystem::path& path);

}  // namespace frostpipe
