#include "executor/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "profiles/error.h"

namespace frostpipe {

void read_and_split(const DataSource& source, TextData& text, Split& split) {
  text = read_tsv(source.data);
  if (!source.test_data.empty()) {
    const TextData test = read_tsv(source.test_data, text.label_names);
    const int num_train = static_cast<int>(text.texts.size()), num_test = static_cast<int>(test.texts.size());
    text.texts.insert(text.texts.end(), test.texts.begin(), test.texts.end());
    text.labels.insert(text.labels.end(), test.labels.begin(), test.labels.end());
    split = {.train = std::vector<int>(num_train), .test = std::vector<int>(num_test)};
    std::iota(split.train.begin(), split.train.end(), 0);
    std::iota(split.test.begin(), split.test.end(), num_train);
    return;
  }
  try {
    split = hold_out(text, source.held_out, source.seed);
  } catch (const InvalidInput& error) {
    throw InvalidInput(source.data.string() + ": " + error.what());
  }
}

WordPiece tokenizer_of(const ModelFolder& folder) {
  const std::filesystem::path vocabulary = wordpiece_vocabulary_in(folder.path);
  WordPiece tokenizer(vocabulary, wordpiece_options_from(folder.path));
  if (tokenizer.vocabulary_size() > folder.config.vocab_size) {
    throw InvalidInput(vocabulary.string(), fmt::format("must have at most the {} tokens of config.json's vocab_size", folder.config.vocab_size),
                       std::to_string(tokenizer.vocabulary_size()));
  }
  return tokenizer;
}

Dataset load_dataset(const DataSource& source, const ModelFolder& folder, int max_tokens) {
  Dataset dataset;
  read_and_split(source, dataset.text, dataset.split);
  dataset.encoded = encode_all(dataset.text, tokenizer_of(folder), std::min<int>(max_tokens, static_cast<int>(folder.config.max_position_embeddings)));
  dataset.test_by_length = dataset.split.test;
  const auto length = [&](int item) { return dataset.encoded.token_ids[item].size(); };
  std::stable_sort(dataset.test_by_length.begin(), dataset.test_by_length.end(), [&](int a, int b) { return length(a) < length(b); });
  return dataset;
}

}  // namespace frostpipe
