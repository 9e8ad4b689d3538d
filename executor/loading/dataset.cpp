#include "executor/loading/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "base/error.h"
#include "base/hash.h"
#include "executor/data/chats/examples.h"
#include "executor/data/records_json.h"
#include "executor/data/text_file.h"
#include "executor/loading/example_samples.h"
#include "executor/loading/held_out.h"
#include "executor/loading/labelled_texts.h"
#include "executor/loading/tagged_samples.h"
#include "executor/loading/text_encoder.h"

namespace frostpipe {
namespace {

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
  hold_out_by_context(source, num_train, dataset);
  EncodedData encoded{.token_ids = {}, .labels = {}, .labels_per_sample = 2};
  // transformers gives all tokens of RoBERTa and its relatives, which count positions from an offset, type 0.
  const bool has_token_types = folder.config.position_offset == 0;
  for (const Window& window : dataset.windows) {
    encoded.token_ids.push_back(window.ids);
    encoded.labels.insert(encoded.labels.end(), {window.start_position, window.end_position});
    encoded.contexts.push_back({window.num_question_tokens, window.num_question_tokens + std::ssize(window.spans)});
    if (has_token_types) encoded.first_segment_sizes.push_back(window.num_question_tokens);
  }
  dataset.samples = std::make_unique<TokenSamples>(std::move(encoded));
  return dataset;
}

/// Adds consecutive blocks of the text. An incomplete last block is left out, unless it is the only one. Returns the
/// number of blocks.
int add_blocks(const std::filesystem::path& path, const Tokenizer& tokenizer, int size, EncodedData& encoded) {
  const std::string text = read_utf8_file(path);
  const std::vector<std::int32_t> ids =
      with_place(path.string(), [&] { return tokenizer.encode(text, {.add_special_tokens = false}); });
  if (ids.size() < 2)
    throw InvalidInput(path.string(), "must have at least two tokens of text", std::to_string(ids.size()));
  const std::size_t length = std::min<std::size_t>(ids.size(), size), count = ids.size() / length;
  for (std::size_t i = 0; i < count; ++i)
    encoded.token_ids.emplace_back(ids.begin() + i * length, ids.begin() + (i + 1) * length);
  return static_cast<int>(count);
}

/// Throws InvalidInput unless test data of a causal model are of the same kind as the data to train on: plain text, or
/// examples. Otherwise it would take labels or JSON for text.
void require_test_data_alike(const DataSource& source, const ColumnNames& columns) {
  const std::filesystem::path& test = source.test_data;
  if (test.empty() || !std::filesystem::is_regular_file(test)) return;
  const bool is_plain = test.extension() == ".txt", trains_plain = source.data.extension() == ".txt";
  if (trains_plain ? is_plain : !is_plain && kind_of_records(test, columns) == RecordKind::examples) return;
  throw InvalidInput(test.string(),
                     fmt::format("must hold {}, as {} does",
                                 trains_plain ? "plain text (in a file that ends in .txt)" : "chats, prompts or texts",
                                 source.data.string()),
                     is_plain             ? "plain text"
                     : !trains_plain      ? "texts or words with labels"
                     : is_json_file(test) ? "JSON"
                                          : "another file");
}

Dataset plain_text(const DataSource& source, const SampleOptions& options, ModelFolder& folder) {
  Dataset dataset{.task = Task::causal_language_modeling};
  set_task(folder, dataset.task, {});
  const Tokenizer tokenizer = tokenizer_of(folder);
  EncodedData encoded{.token_ids = {}, .labels = {}, .labels_per_sample = 0};
  const int size = longest(options, folder);
  require_test_data_alike(source, columns_of(options));
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

Dataset examples(const DataSource& source, const SampleOptions& options, ModelFolder& folder,
                 Answers answers = Answers::required) {
  Dataset dataset{.task = Task::causal_language_modeling, .usual_max_tokens = kMaxTokensOfExamples};
  set_task(folder, dataset.task, {});
  EncodedData encoded{.token_ids = {}, .labels = {}, .labels_per_sample = 0};
  require_test_data_alike(source, columns_of(options));
  const auto add = [&](const std::filesystem::path& path) {
    return add_examples(path, columns_of(options), folder,
                        {.max_tokens = longest(options, folder, dataset.usual_max_tokens),
                         .loss_on_all = options.loss_on_all,
                         .answers = answers},
                        encoded, dataset.notes);
  };
  const int num_train = add(source.data);
  if (!source.test_data.empty()) add(source.test_data);
  dataset.samples = std::make_unique<TokenSamples>(std::move(encoded));
  hold_out_of_all(source, num_train, dataset);
  return dataset;
}

/// Makes the dataset from `parts`: the data to train on and, if given, the data to test on.
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

}  // namespace

Task task_of(const std::filesystem::path& data, const ColumnNames& columns) {
  if (!std::filesystem::exists(data))
    throw InvalidInput(fmt::format("{}: cannot be read: No such file or directory", data.string()));
  const std::filesystem::path extension = data.extension();
  if (std::filesystem::is_directory(data) || extension == ".bin") return Task::image_classification;
  if (has_conll_columns(data)) return Task::token_classification;
  if (extension == ".txt") return Task::causal_language_modeling;
  if (extension == ".json" && !has_json_records(data)) return Task::question_answering;
  // Anything but a regular file, such as a pipe, can be read only once.
  const bool can_look = std::filesystem::is_regular_file(data);
  switch (can_look ? kind_of_records(data, columns) : RecordKind::labelled_texts) {
    case RecordKind::examples:
      return Task::causal_language_modeling;
    case RecordKind::tagged_words:
      return Task::token_classification;
    default:
      return Task::sequence_classification;
  }
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
  hold_out_by_label(source, num_train, dataset);
  dataset.test_by_length = dataset.split.test;  // all samples have one length
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
    case Task::token_classification:
      dataset = tagged_sentences(source, options, folder);
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
  dataset.answer_shape = answer_shape(folder.config);
  dataset.test_by_length = dataset.split.test;
  const auto length = [&](int sample) { return dataset.samples->tokens(sample); };
  std::stable_sort(dataset.test_by_length.begin(), dataset.test_by_length.end(),
                   [&](int a, int b) { return length(a) < length(b); });
  return dataset;
}

Dataset load_to_score(const std::filesystem::path& data, const SampleOptions& options, ModelFolder& folder,
                      Answers answers) {
  Task task = task_of(data, columns_of(options));
  const bool labels_texts = folder.config.task == Task::sequence_classification,
             labels_lines = folder.config.task == Task::token_classification && data.extension() == ".txt";
  if (task == Task::causal_language_modeling && (labels_texts || labels_lines)) task = folder.config.task;
  Dataset dataset;
  if (task == Task::sequence_classification) {
    dataset = texts_to_score(data, options, folder);
  } else if (task == Task::token_classification) {
    dataset = sentences_to_score(data, options, folder);
  } else if (task == Task::image_classification) {
    dataset = load_pictures_to_score(data, image_input(options, /*seed=*/0, folder), labels_to_score(folder));
    set_task(folder, dataset.task, dataset.label_names);
  } else if (task == Task::causal_language_modeling && data.extension() != ".txt") {
    dataset = examples({.data = data, .test_data = {}, .held_out = 0}, options, folder, answers);
  } else {
    return load_dataset({.data = data, .test_data = {}, .held_out = 0}, options, folder);
  }
  dataset.answer_shape = answer_shape(folder.config);
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
