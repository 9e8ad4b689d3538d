#include "executor/loading/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <span>

#include "base/error.h"
#include "base/error_values.h"
#include "base/hash.h"
#include "executor/data/chats/examples.h"
#include "executor/data/records_json.h"
#include "executor/data/text_file.h"
#include "executor/loading/example_samples.h"
#include "executor/loading/text_encoder.h"

namespace frostpipe {
namespace {

template <typename Call>
auto naming(const std::filesystem::path& file, Call call) {
  try {
    return call();
  } catch (const InvalidInput& error) {
    throw InvalidInput(file.string() + ": " + error.what());
  }
}

std::vector<int> numbers(int begin, int end) {
  std::vector<int> result(end - begin);
  std::iota(result.begin(), result.end(), begin);
  return result;
}

/// Tests on everything from `num_train` on, if there is a file to test on; else on a part of each label.
void split_by_label(const DataSource& source, int num_train, Dataset& dataset) {
  const int size = static_cast<int>(dataset.labels.size());
  if (!source.test_data.empty() || source.held_out == 0) {
    dataset.split = {.train = numbers(0, num_train), .test = numbers(num_train, size)};
    return;
  }
  const std::vector<std::string> single = labels_of_one_sample(dataset.labels, dataset.label_names);
  if (static_cast<int>(single.size()) == size)
    throw InvalidInput(source.data.string(),
                       "must have at least two samples of a label, one to train on and one to test on (or give "
                       "--test-data FILE, or --held-out 0 to test on nothing)",
                       fmt::format("with one of each of its {} labels: {}", size, in_quotes(single)));
  if (!single.empty())
    dataset.notes.push_back(fmt::format(
        "{}: {} of {} labels ha{} a single sample, which is trained on and never tested on: {}", source.data.string(),
        single.size(), dataset.label_names.size(), single.size() == 1 ? "s" : "ve", in_quotes(single)));
  dataset.split = naming(source.data, [&] {
    return hold_out(dataset.labels, static_cast<int>(dataset.label_names.size()), source.held_out, source.seed);
  });
}

int longest(const SampleOptions& options, const ModelFolder& folder) {
  return std::min<int>(options.max_tokens, static_cast<int>(folder.config.max_position_embeddings));
}

ColumnNames columns_of(const SampleOptions& options) { return {options.text_column, options.label_column}; }

/// The data's labels in the folder's order where both have the same ones: its classifier is of use then.
std::vector<std::string> in_order_of(const std::vector<std::string>& labels_of_folder,
                                     const std::vector<std::string>& labels_of_data) {
  return std::ranges::is_permutation(labels_of_folder, labels_of_data) ? labels_of_folder : labels_of_data;
}

/// Texts as the model's tokens. `text` keeps nothing but its texts.
Dataset encoded(TextData text, const SampleOptions& options, ModelFolder& folder) {
  set_task(folder, Task::sequence_classification, text.label_names);
  Dataset dataset{.task = Task::sequence_classification,
                  .label_names = std::move(text.label_names),
                  .labels = std::move(text.labels),
                  .notes = std::move(text.notes)};
  EncodedData encoded{.token_ids = {}, .labels = dataset.labels};
  encoded.labels.resize(text.texts.size());  // where there are none, what is computed does not depend on them
  const auto tokens_of = text_encoder(folder, longest(options, folder));
  for (const std::string& one : text.texts) encoded.token_ids.push_back(tokens_of(one));
  if (folder.config.is_causal) {
    const SpecialIds ids = tokenizer_of(folder).special_ids();
    if (const auto padding = ids.padding ? ids.padding : ids.end_of_text) folder.config.padding_id = *padding;
  }
  dataset.samples = std::make_unique<TokenSamples>(std::move(encoded));
  return dataset;
}

Dataset labelled_texts(const DataSource& source, const SampleOptions& options, ModelFolder& folder) {
  TextData text = read_texts(source.data, columns_of(options));
  if (const std::vector<std::string> ordered = in_order_of(folder.label_names, text.label_names);
      ordered != text.label_names)
    text = read_texts(source.data, ordered, columns_of(options));
  const int num_train = static_cast<int>(text.texts.size());
  if (!source.test_data.empty()) {
    TextData test = read_texts(source.test_data, text.label_names, columns_of(options));
    std::move(test.texts.begin(), test.texts.end(), std::back_inserter(text.texts));
    text.labels.insert(text.labels.end(), test.labels.begin(), test.labels.end());
    text.notes.insert(text.notes.end(), test.notes.begin(), test.notes.end());
  }
  Dataset dataset = encoded(std::move(text), options, folder);
  split_by_label(source, num_train, dataset);
  return dataset;
}

/// Held out are whole contexts, so that no text is both learned from and tested on.
Split split_by_context(const DataSource& source, const Dataset& dataset, int num_train_questions) {
  std::vector<int> asked_about;  // contexts that have questions
  for (const Question& question : dataset.questions.questions) asked_about.push_back(question.context);
  std::sort(asked_about.begin(), asked_about.end());
  asked_about.erase(std::unique(asked_about.begin(), asked_about.end()), asked_about.end());
  std::vector<int> held_out;
  if (source.test_data.empty()) {
    if (asked_about.size() < 2 && source.held_out > 0)
      throw InvalidInput(source.data.string(),
                         "must have questions about at least two texts, one to train on and one to test on (or give "
                         "--test-data FILE, or --held-out 0 to test on nothing)",
                         fmt::format("with those about {}", asked_about.size()));
    const Split contexts = naming(source.data, [&] {
      return hold_out(std::vector<int>(asked_about.size(), 0), 1, source.held_out, source.seed);
    });
    for (const int index : contexts.test) held_out.push_back(asked_about[index]);
  }
  Split split;
  for (int i = 0; i < static_cast<int>(dataset.windows.size()); ++i) {
    const int question = dataset.windows[i].question;
    const bool tests = source.test_data.empty() ? std::binary_search(held_out.begin(), held_out.end(),
                                                                     dataset.questions.questions[question].context)
                                                : question >= num_train_questions;
    (tests ? split.test : split.train).push_back(i);
  }
  return split;
}

Dataset questions(const DataSource& source, const SampleOptions& options, ModelFolder& folder) {
  Dataset dataset{.task = Task::question_answering};
  set_task(folder, dataset.task, {});
  dataset.questions = read_squad(source.data);
  const int num_train = static_cast<int>(dataset.questions.questions.size());
  if (!source.test_data.empty()) {
    QuestionSet test = read_squad(source.test_data);
    const int num_contexts = static_cast<int>(dataset.questions.contexts.size());
    for (Question& question : test.questions) question.context += num_contexts;
    std::move(test.contexts.begin(), test.contexts.end(), std::back_inserter(dataset.questions.contexts));
    std::move(test.questions.begin(), test.questions.end(), std::back_inserter(dataset.questions.questions));
  }
  const PairTokenizer tokenizer = pair_tokenizer(tokenizer_of(folder));
  dataset.windows = windows_of(dataset.questions, tokenizer, longest(options, folder), options.window_overlap);
  dataset.split = split_by_context(source, dataset, num_train);
  EncodedData encoded{.token_ids = {}, .labels = {}, .labels_per_sample = 2};
  for (const Window& window : dataset.windows) {
    encoded.token_ids.push_back(window.ids);
    encoded.labels.insert(encoded.labels.end(), {window.start_position, window.end_position});
    encoded.first_segment_sizes.push_back(window.num_question_tokens);
  }
  dataset.samples = std::make_unique<TokenSamples>(std::move(encoded));
  return dataset;
}

/// Adds consecutive blocks of the text. An incomplete last block is left out, unless it is the only one. Returns the
/// number of blocks.
int add_blocks(const std::filesystem::path& path, const Tokenizer& tokenizer, int size, EncodedData& encoded) {
  const std::vector<std::int32_t> ids = tokenizer.encode(read_utf8_file(path), {.add_special_tokens = false});
  if (ids.size() < 2)
    throw InvalidInput(path.string(), "must have at least two tokens of text", std::to_string(ids.size()));
  const std::size_t length = std::min<std::size_t>(ids.size(), size), count = ids.size() / length;
  for (std::size_t i = 0; i < count; ++i)
    encoded.token_ids.emplace_back(ids.begin() + i * length, ids.begin() + (i + 1) * length);
  return static_cast<int>(count);
}

Dataset plain_text(const DataSource& source, const SampleOptions& options, ModelFolder& folder) {
  Dataset dataset{.task = Task::causal_language_modeling};
  set_task(folder, dataset.task, {});
  const Tokenizer tokenizer = tokenizer_of(folder);
  EncodedData encoded{.token_ids = {}, .labels = {}, .labels_per_sample = 0};
  const int size = longest(options, folder);
  int num_train = add_blocks(source.data, tokenizer, size, encoded), num_all = num_train;
  if (!source.test_data.empty()) {
    num_all += add_blocks(source.test_data, tokenizer, size, encoded);
  } else {
    num_train -= static_cast<int>(std::lround(num_all * source.held_out));  // the end of the text is held out
    if (num_train == 0)
      throw InvalidInput(source.data.string(),
                         "must have enough text for a block to train on beside the part that is held out",
                         fmt::format("{} blocks of {} tokens", num_all, size));
  }
  dataset.split = {.train = numbers(0, num_train), .test = numbers(num_train, num_all)};
  dataset.samples = std::make_unique<TokenSamples>(std::move(encoded));
  return dataset;
}

Dataset examples(const DataSource& source, const SampleOptions& options, ModelFolder& folder) {
  Dataset dataset{.task = Task::causal_language_modeling};
  set_task(folder, dataset.task, {});
  EncodedData encoded{.token_ids = {}, .labels = {}, .labels_per_sample = 0};
  const auto add = [&](const std::filesystem::path& path) {
    return add_examples(path, columns_of(options), folder,
                        {.most_tokens = longest(options, folder), .loss_on_all = options.loss_on_all}, encoded,
                        dataset.notes);
  };
  const int num_train = add(source.data);
  if (!source.test_data.empty() || source.held_out == 0) {
    if (!source.test_data.empty()) add(source.test_data);
    dataset.split = {.train = numbers(0, num_train),
                     .test = numbers(num_train, static_cast<int>(encoded.token_ids.size()))};
  } else {
    if (num_train < 2)
      throw InvalidInput(source.data.string(),
                         "must have at least two samples, one to train on and one to test on (or give --test-data "
                         "FILE, or --held-out 0 to test on nothing)",
                         "with one");
    dataset.split = naming(source.data, [&] {
      return hold_out(std::vector<int>(encoded.token_ids.size(), 0), 1, source.held_out, source.seed);
    });
  }
  dataset.samples = std::make_unique<TokenSamples>(std::move(encoded));
  return dataset;
}

/// `parts` is one source, or one to train and one to test on.
Dataset image_dataset(std::vector<ImageData> parts, const ImageInput& input) {
  Dataset dataset{.task = Task::image_classification, .label_names = parts.front().label_names()};
  for (const ImageData& part : parts) {
    for (int i = 0; i < part.size(); ++i) dataset.labels.push_back(part.label(i));
  }
  dataset.samples = std::make_unique<ImageSamples>(std::move(parts), input);
  return dataset;
}

ImageInput image_input(const SampleOptions& options, std::uint64_t seed, const ModelFolder& folder) {
  return {.size = static_cast<int>(folder.config.image_size),
          .tokens = static_cast<int>(image_tokens(folder.config)),
          .normalisation = read_normalisation(folder.path),
          .augmentation = {.crop_padding = options.crop_padding, .flip = options.flip},
          .seed = seed};
}

/// Labels of the folder that data can be compared with.
const std::vector<std::string>& labels_to_score(const ModelFolder& folder) {
  require_different_labels(folder.path, folder.label_names);
  return folder.label_names;
}

}  // namespace

Task task_of(const std::filesystem::path& data, const ColumnNames& columns) {
  const std::filesystem::path extension = data.extension();
  if (std::filesystem::is_directory(data) || extension == ".bin") return Task::image_classification;
  if (extension == ".txt") return Task::causal_language_modeling;
  if (extension == ".json" && !has_json_records(data)) return Task::question_answering;
  // Anything but a regular file, such as a pipe, can be read only once.
  const bool can_look = std::filesystem::is_regular_file(data);
  return can_look && kind_of_records(data, columns) == RecordKind::examples ? Task::causal_language_modeling
                                                                            : Task::sequence_classification;
}

void require_different_labels(const std::filesystem::path& model_folder, const std::vector<std::string>& label_names) {
  const std::string place = (model_folder / "config.json").string() + ": id2label";
  if (label_names.empty())
    throw InvalidInput(place, "must name the labels (give a folder that train wrote)", "missing");
  const std::set<std::string> different(label_names.begin(), label_names.end());
  if (different.size() < label_names.size())
    throw InvalidInput(place, "must name each label differently for data with labels",
                       fmt::format("{} names for {} labels", different.size(), label_names.size()));
}

Dataset load_pictures(const DataSource& source, const ImageInput& input, const std::vector<std::string>& known_labels) {
  std::vector<ImageData> parts{open_images(source.data)};
  if (const std::vector<std::string> ordered = in_order_of(known_labels, parts.front().label_names());
      ordered != parts.front().label_names())
    parts = {open_images(source.data, ordered)};
  const int num_train = parts.front().size();
  if (!source.test_data.empty()) parts.push_back(open_images(source.test_data, parts.front().label_names()));
  Dataset dataset = image_dataset(std::move(parts), input);
  split_by_label(source, num_train, dataset);
  return dataset;
}

Dataset load_pictures_to_score(const std::filesystem::path& data, const ImageInput& input,
                               const std::vector<std::string>& labels) {
  const ImageData images = open_images(data, labels);
  Dataset dataset = image_dataset({images}, input);
  for (int i = 0; i < images.size(); ++i) dataset.items.push_back(images.place(i));
  dataset.split.train = numbers(0, images.size());
  return dataset;
}

Dataset load_dataset(const DataSource& source, const SampleOptions& options, ModelFolder& folder) {
  const Task task = task_of(source.data, columns_of(options));
  if ((options.crop_padding > 0 || options.flip) && task != Task::image_classification)
    throw InvalidInput("--crop-padding, --flip: are for pictures, and " + source.data.string() + " is text");
  Dataset dataset;
  switch (task) {
    case Task::sequence_classification:
      dataset = labelled_texts(source, options, folder);
      break;
    case Task::question_answering:
      dataset = questions(source, options, folder);
      break;
    case Task::causal_language_modeling:
      dataset =
          source.data.extension() == ".txt" ? plain_text(source, options, folder) : examples(source, options, folder);
      break;
    case Task::image_classification:
      dataset = load_pictures(source, image_input(options, source.seed, folder), folder.label_names);
      set_task(folder, dataset.task, dataset.label_names);
      break;
  }
  dataset.test_by_length = dataset.split.test;
  const auto length = [&](int sample) { return dataset.samples->tokens(sample); };
  std::stable_sort(dataset.test_by_length.begin(), dataset.test_by_length.end(),
                   [&](int a, int b) { return length(a) < length(b); });
  return dataset;
}

Dataset load_to_score(const std::filesystem::path& data, const SampleOptions& options, ModelFolder& folder) {
  const Task task = task_of(data, columns_of(options));
  const bool has_lines = task == Task::causal_language_modeling && folder.config.task == Task::sequence_classification;
  Dataset dataset;
  if (task == Task::sequence_classification || has_lines) {
    TextData text = read_texts_to_label(data, labels_to_score(folder), columns_of(options));
    std::vector<std::string> texts = text.texts;
    dataset = encoded(std::move(text), options, folder);
    dataset.items = std::move(texts);
  } else if (task == Task::image_classification) {
    dataset = load_pictures_to_score(data, image_input(options, /*seed=*/0, folder), labels_to_score(folder));
    set_task(folder, dataset.task, dataset.label_names);
  } else {
    return load_dataset({.data = data, .test_data = {}, .held_out = 0}, options, folder);
  }
  dataset.split.train = numbers(0, dataset.samples->size());
  return dataset;
}

std::string fingerprint(const Dataset& dataset) {
  StreamHash hash;
  const auto add = [&hash](const auto& values) { hash.add(std::as_bytes(std::span(values))); };
  add(std::vector<std::uint64_t>{dataset.samples->fingerprint()});
  add(dataset.split.train);
  add(dataset.split.test);
  return fmt::format("{:016x}", hash.value());
}

}  // namespace frostpipe
