#include "executor/data/tagged_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "base/error_values.h"
#include "base/separated_values.h"
#include "executor/data/records_json.h"
#include "executor/data/text_file.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kDocument = "-DOCSTART-";

/// A sentence with its labels as the file spells them.
struct RawSentence {
  std::vector<std::string> words, labels;
  std::vector<std::string> places;  // of the labels
};

std::vector<std::string_view> fields_between_blanks(std::string_view line) {
  std::vector<std::string_view> fields;
  for (const std::string_view field : split(line, ' '))
    if (!field.empty()) fields.push_back(field);
  return fields;
}

std::vector<std::string_view> columns_in(std::string_view line) {
  return line.find('\t') == std::string_view::npos ? fields_between_blanks(line) : split(line, '\t');
}

std::vector<RawSentence> sentences_of_columns(const std::filesystem::path& path, bool needs_labels) {
  const std::string content = read_utf8_file(path);
  std::vector<RawSentence> sentences(1);
  const auto end_sentence = [&] {
    if (!sentences.back().words.empty()) sentences.emplace_back();
  };
  std::size_t number = 0, num_columns = 0;
  for (const std::string_view line : lines_of(content)) {
    const std::string place = RecordPlace{.number = ++number}.in(path);
    if (trimmed(line).empty() || line.starts_with(kDocument)) {
      end_sentence();
      continue;
    }
    const std::vector<std::string_view> columns = columns_in(line);
    if (num_columns == 0) num_columns = columns.size();
    if (columns.size() != num_columns || (needs_labels && num_columns < 2))
      throw InvalidInput(place,
                         num_columns < 2 && needs_labels
                             ? "must be a word and its label, between blanks or tabs (an empty line ends a sentence)"
                             : fmt::format("must have as many columns as the first word's line, {}, between blanks or "
                                           "tabs (an empty line ends a sentence)",
                                           num_columns),
                         in_quotes(line));
    if (trimmed(columns.front()).empty() || trimmed(columns.back()).empty())
      throw InvalidInput(place, "the word and its label must not be empty", in_quotes(line));
    sentences.back().words.emplace_back(columns.front());
    if (num_columns < 2) continue;
    sentences.back().labels.emplace_back(columns.back());
    sentences.back().places.push_back(place);
  }
  if (sentences.back().words.empty()) sentences.pop_back();
  return sentences;
}

const Json* list_in(const Json& record, const std::vector<std::string>& names, std::string& found) {
  for (const std::string& name : names)
    if (const auto member = record.find(name); member != record.end() && !member->is_null()) {
      found = name;
      return &*member;
    }
  return nullptr;
}

std::string label_of(const Json& label, const std::vector<std::string>& known_labels, const std::string& place) {
  if (label.is_string() && !label.get_ref<const std::string&>().empty()) return label;
  if (label.is_number_integer() && label >= 0 && label < known_labels.size())
    return known_labels[label.get<std::size_t>()];
  throw InvalidInput(
      place,
      known_labels.empty()
          ? "must be a text, such as \"B-PER\" (a number is one of id2label's in the model's config.json, "
            "which names none)"
          : fmt::format("must be a text, such as \"B-PER\", or the number of one of the model's {} labels",
                        known_labels.size()),
      shown(label));
}

std::vector<RawSentence> sentences_of_records(const std::filesystem::path& path,
                                              const std::vector<std::string>& known_labels, const ColumnNames& columns,
                                              bool needs_labels) {
  const auto names_or = [](const std::string& given, std::vector<std::string> usual) {
    return given.empty() ? usual : std::vector{given};
  };
  const std::vector<std::string> word_fields = names_or(columns.text, {"tokens"}),
                                 label_fields = names_or(columns.label, {"ner_tags", "tags"});
  std::vector<RawSentence> sentences;
  for_each_record(path, [&](const Json& record, const RecordPlace& at) {
    const std::string place = at.in(path);
    std::string word_field, label_field;
    const Json* const words = list_in(record, word_fields, word_field);
    const Json* const labels = list_in(record, label_fields, label_field);
    const bool must_have = needs_labels || (!sentences.empty() && !sentences.front().labels.empty());
    if (!words || !words->is_array() || (must_have && !labels) || (labels && !labels->is_array()))
      throw InvalidInput(place,
                         fmt::format("must have a list of words {} and one of their labels {} (--text-column and "
                                     "--label-column name others)",
                                     in_quotes(word_fields.front()), in_quotes(label_fields)),
                         "an object with " + shown_fields(record));
    if (labels && labels->size() != words->size())
      throw InvalidInput(fmt::format("{}: {}", place, label_field),
                         fmt::format("must have a label for each of the {} words", words->size()),
                         std::to_string(labels->size()));
    if (labels && !must_have && !sentences.empty())
      throw InvalidInput(fmt::format("{}: {}", place, label_field), "must be there in all lines or in none",
                         "not in the first");
    RawSentence sentence;
    for (std::size_t i = 0; i < words->size(); ++i) {
      const Json& word = (*words)[i];
      if (!word.is_string())
        throw InvalidInput(fmt::format("{}: {}[{}]", place, word_field, i), "must be a text", shown(word));
      sentence.words.push_back(word);
      if (!labels) continue;
      sentence.places.push_back(fmt::format("{}: {}[{}]", place, label_field, i));
      sentence.labels.push_back(label_of((*labels)[i], known_labels, sentence.places.back()));
    }
    if (!sentence.words.empty()) sentences.push_back(std::move(sentence));
    return true;
  });
  return sentences;
}

std::vector<RawSentence> sentences_of_lines(const std::filesystem::path& path) {
  const std::string content = read_utf8_file(path);
  std::vector<RawSentence> sentences;
  for (const std::string_view line : lines_of(content)) {
    RawSentence sentence;
    for (const std::string_view word : fields_between_blanks(line)) sentence.words.emplace_back(word);
    if (!sentence.words.empty()) sentences.push_back(std::move(sentence));
  }
  return sentences;
}

std::vector<RawSentence> read_sentences(const std::filesystem::path& path, const std::vector<std::string>& known_labels,
                                        const ColumnNames& columns, bool needs_labels) {
  const bool has_lines = !needs_labels && path.extension() == ".txt" && !has_conll_columns(path);
  std::vector<RawSentence> sentences =
      is_json_file(path) ? sentences_of_records(path, known_labels, columns, needs_labels)
                         : (has_lines ? sentences_of_lines(path) : sentences_of_columns(path, needs_labels));
  if (sentences.empty()) throw InvalidInput(path.string(), "must have a word", "without one");
  return sentences;
}

TaggedWords numbered(std::vector<RawSentence> sentences, const std::vector<std::string>& label_names) {
  std::map<std::string_view, int> number_of;
  for (const std::string& name : label_names) number_of.emplace(name, static_cast<int>(number_of.size()));
  TaggedWords words{.sentences = {}, .label_names = label_names};
  for (RawSentence& raw : sentences) {
    TaggedSentence& sentence = words.sentences.emplace_back();
    sentence.words = std::move(raw.words);
    for (std::size_t i = 0; i < raw.labels.size(); ++i) {
      const auto found = number_of.find(raw.labels[i]);
      if (found == number_of.end())
        throw InvalidInput(raw.places[i], "the label must be one that the model knows (" + in_quotes(label_names) + ")",
                           in_quotes(raw.labels[i]));
      sentence.labels.push_back(found->second);
    }
  }
  return words;
}

}  // namespace

bool has_conll_columns(const std::filesystem::path& path) {
  if (path.extension() == ".conll" || path.extension() == ".bio") return true;
  if (path.extension() != ".txt" || !std::filesystem::is_regular_file(path)) return false;
  std::string begin(kDocument.size(), ' ');
  std::ifstream(path).read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return begin == kDocument;
}

TaggedWords read_tagged_words(const std::filesystem::path& path, const std::vector<std::string>& known_labels,
                              const ColumnNames& columns) {
  std::vector<RawSentence> sentences = read_sentences(path, known_labels, columns, /*needs_labels=*/true);
  std::vector<std::string> names;
  for (const RawSentence& sentence : sentences)
    names.insert(names.end(), sentence.labels.begin(), sentence.labels.end());
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (names.size() < 2)
    throw InvalidInput(path.string(), "must have at least two different labels", "all " + in_quotes(names.front()));
  const bool are_known = std::ranges::all_of(
      names, [&](const std::string& name) { return std::ranges::find(known_labels, name) != known_labels.end(); });
  return numbered(std::move(sentences), are_known ? known_labels : names);
}

TaggedWords read_tagged_words_of(const std::filesystem::path& path, const std::vector<std::string>& label_names,
                                 const ColumnNames& columns) {
  return numbered(read_sentences(path, label_names, columns, /*needs_labels=*/true), label_names);
}

TaggedWords read_words_to_label(const std::filesystem::path& path, const std::vector<std::string>& label_names,
                                const ColumnNames& columns) {
  return numbered(read_sentences(path, label_names, columns, /*needs_labels=*/false), label_names);
}

}  // namespace frostpipe
