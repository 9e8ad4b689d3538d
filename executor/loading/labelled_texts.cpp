#include "executor/loading/labelled_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "executor/loading/held_out.h"
#include "executor/loading/text_encoder.h"

namespace frostpipe {

int longest(const SampleOptions& options, const ModelFolder& folder, int usual) {
  return std::min(options.max_tokens > 0 ? options.max_tokens : usual,
                  static_cast<int>(folder.config.max_position_embeddings));
}

ColumnNames columns_of(const SampleOptions& options) { return {options.text_column, options.label_column}; }

std::vector<std::string> in_order_of(const std::vector<std::string>& labels_of_folder,
                                     const std::vector<std::string>& labels_of_data) {
  return std::ranges::is_permutation(labels_of_folder, labels_of_data) ? labels_of_folder : labels_of_data;
}

const std::vector<std::string>& labels_to_score(const ModelFolder& folder) {
  require_different_labels(folder.path, folder.label_names);
  return folder.label_names;
}

std::string place_of(const DataSource& source, int num_train, int sample, const char* kind) {
  const bool is_test = sample >= num_train;
  return fmt::format("{}: {} {}", (is_test ? source.test_data : source.data).string(), kind,
                     1 + (is_test ? sample - num_train : sample));
}

namespace {

/// Makes a dataset of texts, encoded by the model's tokenizer. The first `num_train` texts are those of source.data.
Dataset encoded(TextData text, const DataSource& source, int num_train, const SampleOptions& options,
                ModelFolder& folder) {
  set_task(folder, Task::sequence_classification, text.label_names, text.problem_type);
  Dataset dataset{.task = Task::sequence_classification,
                  .problem_type = text.problem_type,
                  .label_names = std::move(text.label_names),
                  .labels = std::move(text.labels),
                  .targets = std::move(text.targets),
                  .notes = std::move(text.notes)};
  // Data without labels get label 0, on which predictions do not depend.
  EncodedData encoded{.token_ids = {}, .labels = dataset.labels, .targets = dataset.targets};
  encoded.labels.resize(text.texts.size());
  const int limit = longest(options, folder);
  const auto tokens_of = text_encoder(folder, limit), tokens_of_longer = text_encoder(folder, limit + 1);
  int num_cut = 0;
  for (int i = 0; i < std::ssize(text.texts); ++i) {
    const std::string& one = text.texts[i];
    encoded.token_ids.push_back(with_place(place_of(source, num_train, i, "text"), [&] { return tokens_of(one); }));
    num_cut += std::ssize(encoded.token_ids.back()) == limit && std::ssize(tokens_of_longer(one)) > limit;
    drop_padding(folder.config, encoded.token_ids.back());
  }
  if (num_cut > 0)
    dataset.notes.push_back(
        fmt::format("{} of {} texts are cut after {} tokens (--max-tokens, or what the model takes)", num_cut,
                    text.texts.size(), limit));
  dataset.samples = std::make_unique<TokenSamples>(std::move(encoded));
  return dataset;
}

}  // namespace

Dataset labelled_texts(const DataSource& source, const SampleOptions& options, ModelFolder& folder) {
  TextData text = read_texts(source.data, columns_of(options), folder.config.problem_type);
  if (const std::vector<std::string> ordered = in_order_of(folder.label_names, text.label_names);
      ordered != text.label_names)
    text = read_texts(source.data, ordered, columns_of(options), text.problem_type);
  const int num_train = static_cast<int>(text.texts.size());
  if (!source.test_data.empty()) {
    TextData test = read_texts(source.test_data, text.label_names, columns_of(options), text.problem_type);
    std::move(test.texts.begin(), test.texts.end(), std::back_inserter(text.texts));
    text.labels.insert(text.labels.end(), test.labels.begin(), test.labels.end());
    text.targets.insert(text.targets.end(), test.targets.begin(), test.targets.end());
    text.notes.insert(text.notes.end(), test.notes.begin(), test.notes.end());
  }
  if (folder.config.is_causal && !folder.config.padding_id) {  // a batch of transformers needs one
    const SpecialIds ids = tokenizer_of(folder).special_ids();
    folder.config.padding_id = ids.padding ? ids.padding : ids.end_of_text;
  }
  Dataset dataset = encoded(std::move(text), source, num_train, options, folder);
  dataset.problem_type == ProblemType::single_label ? hold_out_by_label(source, num_train, dataset)
                                                    : hold_out_of_all(source, num_train, dataset);
  return dataset;
}

Dataset texts_to_score(const std::filesystem::path& data, const SampleOptions& options, ModelFolder& folder) {
  const ProblemType problem_type = folder.config.problem_type;
  const bool has_names = problem_type != ProblemType::regression;
  TextData text = read_texts_to_label(data, has_names ? labels_to_score(folder) : folder.label_names,
                                      columns_of(options), problem_type);
  std::vector<std::string> texts = text.texts;
  const int size = static_cast<int>(texts.size());
  Dataset dataset = encoded(std::move(text), {.data = data, .test_data = {}}, size, options, folder);
  dataset.items = std::move(texts);
  return dataset;
}

}  // namespace frostpipe
