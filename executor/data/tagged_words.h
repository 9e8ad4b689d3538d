#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "executor/data/text_data.h"

namespace frostpipe {

/// Words, each with a label, or all without: an index into TaggedWords::label_names.
struct TaggedSentence {
  std::vector<std::string> words;
  std::vector<int> labels;

  bool operator==(const TaggedSentence&) const = default;
};

/// Sentences in the order of their file.
struct TaggedWords {
  std::vector<TaggedSentence> sentences;
  std::vector<std::string> label_names;

  bool operator==(const TaggedWords&) const = default;
};

/// Returns whether a file's name or first line says that it holds words in the columns of CoNLL: .conll, .bio, or a
/// .txt that begins with -DOCSTART-.
bool has_conll_columns(const std::filesystem::path& path);

/// Reads words with labels:
///
/// - In the columns of CoNLL: a word in each line, in the first column, and its label in the last one, between blanks,
/// or
///   between tabs where the line has one; all lines have as many. An empty line ends a sentence, and so does a line
///   that begins with -DOCSTART-, which is no word.
/// - Records of JSON (for_each_record): a list of words in `tokens`, and one of their labels in `ner_tags` (or `tags`),
/// or
///   as `columns` says. A label is a text; or a number of one of `known_labels`, as `datasets` has them.
///
/// label_names are `known_labels` where they have all labels of the file, else these, in order of their bytes. Throws
/// InvalidInput that names file, line or element, rule and value; also for a file without a word, or with fewer than
/// two labels.
TaggedWords read_tagged_words(const std::filesystem::path& path, const std::vector<std::string>& known_labels,
                              const ColumnNames& columns = {});

/// The same for data to be tested on: a label that is not one of `label_names` is an error.
TaggedWords read_tagged_words_of(const std::filesystem::path& path, const std::vector<std::string>& label_names,
                                 const ColumnNames& columns = {});

/// Words that a model is to label: as above, but the labels may be missing, and a .txt file without columns has a
/// sentence in each line, words between blanks.
TaggedWords read_words_to_label(const std::filesystem::path& path, const std::vector<std::string>& label_names,
                                const ColumnNames& columns = {});

}  // namespace frostpipe
