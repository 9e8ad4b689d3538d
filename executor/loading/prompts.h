#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "executor/data/text_data.h"
#include "executor/models/folder/model_folder.h"

namespace frostpipe {

/// A prompt for a causal model.
struct Prompt {
  std::string place;              // "data.jsonl:7"
  std::string text;               // a chat is rendered up to the assistant's turn
  std::vector<std::int32_t> ids;  // tokens of the text and, unless it is a chat, the tokenizer's tokens before it
  std::string expected;           // the completion in the data; "" if there is none
};

/// Returns the prompts of a file of examples (read_examples), encoded as in training. The prompt of a chat is the whole
/// chat, without the assistant's last message if that ends the chat. Answers are optional. Examples without a prompt
/// are left out, which `notes` reports. Throws InvalidInput that names file and line, also if no example has a prompt.
std::vector<Prompt> read_prompts(const std::filesystem::path& path, const ColumnNames& columns,
                                 const ModelFolder& folder, std::vector<std::string>& notes);

}  // namespace frostpipe
