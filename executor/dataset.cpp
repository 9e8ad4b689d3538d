#include "executor/dataset.h"

#include <fmt/format.h>

#include <algorithm>

#include "profiles/error.h"

namespace frostpipe {

void read_and_split(const std::filesystem::path& data, double held_out, std::uint64_t seed, TextData& text, Split& split) {
  text = read_tsv(data);
  try {
    split = hold_out(text, held_out, seed);
  } catch (const InvalidInput& error) {
    throw InvalidInput(data.string() + ": " + error.what());
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

Dataset load_dataset(const std::filesystem::path& data, const ModelFolder& folder, double held_out, std::uint64_t seed, int max_tokens) {
  Dataset dataset;
  read_and_split(data, held_out, seed, dataset.text, dataset.split);
  dataset.encoded = encode_all(dataset.text, tokenizer_of(folder), std::min<int>(max_tokens, static_cast<int>(folder.config.max_position_embeddings)));
  dataset.test_by_length = dataset.split.test;
  const auto length = [&](int item) { return dataset.encoded.token_ids[item].size(); };
  std::stable_sort(dataset.test_by_length.begin(), dataset.test_by_length.end(), [&](int a, int b) { return length(a) < length(b); });
  return dataset;
}

}  // namespace frostpipe
