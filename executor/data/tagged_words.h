#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "executor/data/text_data.h"

namespace frostpipe {

/// Words, and for each one a label, an index into TaggedWords::label_names. If there are no labels, `labels` is empty.
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
/// - In the columns of CoNLL, each line has a word in its first column and the word's label in its last one. Columns
///   are separated by tabs if the line has one, otherwise by blanks; all lines have the same number of columns. A
///   sentence ends at an empty line, and at a line that begins with -DOCSTART-, which is not a word. The columns may
///   also be in a .txt file without a line -DOCSTART-.
/// - In records of JSON (for_each_record), a list of words is in `tokens`, and a list of their labels in `ner_tags` (or
///   `tags`), or in the fields that `columns` names. A label is a text, or the number of one of `known_labels`, as in
///   the library `datasets`.
///
/// label_names become `known_labels` if these include all labels of the file, otherwise the file's labels in order of
/// their bytes. Throws InvalidInput that names file, line or element, rule and value; also for a file without a word,
/// or with fewer than two labels.
TaggedWords read_tagged_words(const std::filesystem::path& path, const std::vector<std::string>& known_labels,
                              const ColumnNames& columns = {});

/// Does the same for test data: a label that is not one of `label_names` is an error.
TaggedWords read_tagged_words_of(const std::filesystem::path& path, const std::vector<std::string>& label_names,
                                 const ColumnNames& columns = {});

/// Reads words that a model is to label. It reads the same files, but the labels may be missing, and a .txt file
/// without columns has a sentence in each line, with blanks between words.
TaggedWords read_words_to_label(const std::filesystem::path& path, const std::vector<std::string>& label_names,
                                const ColumnNames& columns = {});

}  // namespace frostpipe
