#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "executor/data/text_data.h"
#include "executor/loading/samples.h"
#include "executor/models/folder/model_folder.h"

namespace frostpipe {

struct ExampleOptions {
  int most_tokens = 0;       // longer ones are cut
  bool loss_on_all = false;  // also on prompts, and on what others than the assistant say
};

/// Adds the examples of a file (read_examples), a sample each, as the folder's tokenizer and chat template make them.
/// Chats are rendered by the template, and so are instructions where there is one; a completion and a text end in the
/// token for that. The loss is on completions, with that token, and on what the assistant says (ChatTemplate::render);
/// a token is learned where it has a byte of them. Those in which nothing is left to predict after the cut are left
/// out. Returns how many were added; `notes` says what was cut and left out.
///
/// Throws InvalidInput that names file and line; also where the folder has no template for chats, and where nothing is
/// left to learn.
int add_examples(const std::filesystem::path& path, const ColumnNames& columns, const ModelFolder& folder,
                 const ExampleOptions& options, EncodedData& data, std::vector<std::string>& notes);

}  // namespace frostpipe
