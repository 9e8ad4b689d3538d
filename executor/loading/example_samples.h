#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "executor/data/chats/examples.h"
#include "executor/data/text_data.h"
#include "executor/loading/samples.h"
#include "executor/models/folder/model_folder.h"

namespace frostpipe {

struct ExampleOptions {
  int max_tokens = 0;        // longer samples are truncated
  bool loss_on_all = false;  // compute the loss on prompts and on messages of other roles too
  Answers answers = Answers::required;
};

/// Adds the examples of a file (read_examples), one sample each, using the folder's tokenizer and chat template. Chats
/// are rendered by the template, as are instructions if there is one; completions and plain texts get the end-of-text
/// token. The loss is on completions, including that token, and on the assistant's messages (ChatTemplate::render): on
/// every token with at least one of their bytes. Samples in which, after truncation, no predicted token has a loss are
/// left out; so are examples without an answer, where they are allowed. Returns the number of added samples; `notes`
/// reports how many were truncated and left out.
///
/// Throws InvalidInput that names file and line, also if there are chats and the folder has no template for them, and
/// if the file has examples with answers but all samples would be left out.
int add_examples(const std::filesystem::path& path, const ColumnNames& columns, const ModelFolder& folder,
                 const ExampleOptions& options, EncodedData& data, std::vector<std::string>& notes);

}  // namespace frostpipe
