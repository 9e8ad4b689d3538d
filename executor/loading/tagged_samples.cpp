#include "executor/loading/tagged_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "executor/loading/held_out.h"
#include "executor/loading/labelled_texts.h"
#include "executor/loading/text_encoder.h"

namespace frostpipe {
namespace {

std::vector<std::string> named_labels(const ModelFolder& folder) {
  return are_unnamed(folder.label_names) ? std::vector<std::string>() : folder.label_names;
}

/// Makes a dataset of sentences, encoded by the model's tokenizer. The first `num_train` are those of source.data.
Dataset encoded(TaggedWords words, const DataSource& source, int num_train, const SampleOptions& options,
                ModelFolder& folder) {
  set_task(folder, Task::token_classification, words.label_names);
  const WordEncoder encoder = word_encoder(folder);
  const std::size_t most = longest(options, folder), around = encoder.before.size() + encoder.after.size();
  if (most <= around)
    throw InvalidInput("--max-tokens",
                       fmt::format("must be at least {}, for a token besides those around a text", around + 1),
                       std::to_string(most));
  EncodedData encoded{.token_ids = {}, .labels = {}};
  Dataset dataset{.task = Task::token_classification, .label_names = words.label_names};
  int num_cut_in_data = 0, num_cut_in_test = 0;
  for (int i = 0; i < std::ssize(words.sentences); ++i) {
    const TaggedSentence& sentence = words.sentences[i];
    const std::string place = place_of(source, num_train, i, "sentence");
    std::vector<std::int32_t>& ids = encoded.token_ids.emplace_back(encoder.before);
    std::vector<int>& labels = encoded.token_labels.emplace_back(ids.size(), static_cast<int>(kIgnored));
    std::vector<int>& first_tokens = dataset.first_tokens.emplace_back(sentence.words.size(), -1);
    bool is_cut = false;
    for (std::size_t word = 0; word < sentence.words.size(); ++word) {
      const std::vector<std::int32_t> tokens =
          with_place(place, [&] { return encoder.tokens_of(sentence.words[word]); });
      is_cut = is_cut || ids.size() + tokens.size() + encoder.after.size() > most;
      if (is_cut) break;
      if (tokens.empty()) continue;
      first_tokens[word] = static_cast<int>(ids.size());
      ids.insert(ids.end(), tokens.begin(), tokens.end());
      labels.resize(ids.size(), static_cast<int>(kIgnored));
      if (!sentence.labels.empty()) labels[first_tokens[word]] = sentence.labels[word];
    }
    (i < num_train ? num_cut_in_data : num_cut_in_test) += is_cut;
    ids.insert(ids.end(), encoder.after.begin(), encoder.after.end());
    labels.resize(ids.size(), static_cast<int>(kIgnored));
  }
  const auto note = [&](const std::filesystem::path& file, int num_cut, std::size_t num_all) {
    if (num_cut > 0)
      dataset.notes.push_back(
          fmt::format("{}: {} of {} sentences are longer than {} tokens; their last words are cut off, "
                      "and count as predicted O when the model is tested",
                      file.string(), num_cut, num_all, most));
  };
  note(source.data, num_cut_in_data, num_train);
  note(source.test_data, num_cut_in_test, words.sentences.size() - num_train);
  dataset.words = std::move(words);
  dataset.samples = std::make_unique<TokenSamples>(std::move(encoded));
  return dataset;
}

}  // namespace

Dataset tagged_sentences(const DataSource& source, const SampleOptions& options, ModelFolder& folder) {
  TaggedWords words = read_tagged_words(source.data, named_labels(folder), columns_of(options));
  if (const std::vector<std::string> ordered = in_order_of(folder.label_names, words.label_names);
      ordered != words.label_names)
    words = read_tagged_words(source.data, ordered, columns_of(options));
  const int num_train = static_cast<int>(words.sentences.size());
  if (!source.test_data.empty()) {
    TaggedWords test = read_tagged_words_of(source.test_data, words.label_names, columns_of(options));
    std::ranges::move(test.sentences, std::back_inserter(words.sentences));
  }
  Dataset dataset = encoded(std::move(words), source, num_train, options, folder);
  hold_out_of_all(source, num_train, dataset);
  return dataset;
}

Dataset sentences_to_score(const std::filesystem::path& data, const SampleOptions& options, ModelFolder& folder) {
  TaggedWords words = read_words_to_label(data, labels_to_score(folder), columns_of(options));
  const int size = static_cast<int>(words.sentences.size());
  return encoded(std::move(words), {.data = data, .test_data = {}}, size, options, folder);
}

}  // namespace frostpipe
