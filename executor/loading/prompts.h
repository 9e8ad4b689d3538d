#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "executor/data/text_data.h"
#include "executor/models/folder/model_folder.h"

namespace frostpipe {

/// What a causal model is to go on with.
struct Prompt {
  std::string place;  // "data.jsonl:7"
  std::string text;   // a chat as the template renders it, up to where the assistant is to speak
  std::vector<std::int32_t> ids;
  std::string expected;  // the completion in the data; empty where it has none
};

/// Those of a file of examples (read_examples), as training has them: of a chat all before the assistant's last turn,
/// if that is its end. Throws InvalidInput that names file and line; also for a text without a prompt.
std::vector<Prompt> read_prompts(const std::filesystem::path& path, const ColumnNames& columns,
                                 const ModelFolder& folder);

}  // namespace frostpipe
