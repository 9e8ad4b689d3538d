#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "executor/data/tokenizers/models/model.h"
#include "executor/data/tokenizers/text/byte_level_words.h"

namespace frostpipe {

struct MergeRule {
  std::string left;
  std::string right;
  std::string place;  // for errors
};

/// The content of a BPE model's files.
struct BpeFile {
  std::vector<std::string> tokens;        // by id
  std::vector<MergeRule> merges;          // by rank
  std::optional<std::int32_t> unknown{};  // id of unk_token
  bool is_byte_level = false, falls_back_to_bytes = false, fuses_unknown = false, ignores_merges = false;
};

/// Reads a BPE model. Throws InvalidInput for all errors except merges whose tokens the vocabulary lacks, and duplicate
/// merges.
BpeFile read_bpe_file(PipelinePart& part, const ModelContext& context);

}  // namespace frostpipe
