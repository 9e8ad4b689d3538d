#pragma once
// Implementation header: include it from .cpp files only.
#include <filesystem>

#include "executor/data/tokenizers/tokenizer_files.h"

namespace frostpipe {

/// What the tokenizer.json of a BERT model with this vocab.txt, whose line n (from 0) is token n, would say, with the
/// roles of its special tokens. Throws InvalidInput that names file, line and rule where a line is empty or repeats
/// another, or where [UNK], [CLS] or [SEP] is missing.
TokenizerFiles bert_files(const std::filesystem::path& vocabulary);

/// The same of a model with a vocab.json and merges.txt: RoBERTa's where the vocabulary has <s> and </s>, else GPT-2's.
TokenizerFiles byte_level_files(const std::filesystem::path& vocabulary, const std::filesystem::path& merges);

/// Throws InvalidInput that names the file where it is no JSON object or nests too deeply.
nlohmann::json read_json_object(const std::filesystem::path& path);

}  // namespace frostpipe
