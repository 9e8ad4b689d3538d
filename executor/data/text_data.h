#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "profiles/transformer/transformer_config.h"

namespace frostpipe {

/// Texts for classification, in the order of the file.
struct TextData {
  std::vector<std::string> texts;
  ProblemType problem_type = ProblemType::single_label;  // the kind of labels
  /// For single_label: an index into label_names for each text; empty if the data have no labels.
  std::vector<int> labels;
  /// For the other types, by text: for multi_label, a value for each of label_names, which is 1 if the text has that
  /// label and else 0; for regression, the number. Empty if the data have no labels.
  std::vector<std::vector<double>> targets{};
  std::vector<std::string> label_names;  // for regression LABEL_0, as in transformers
  /// Messages for the user that name the file, on things that are valid but may be mistakes.
  std::vector<std::string> notes;

  bool operator==(const TextData&) const = default;
};

/// Names of columns or JSON fields that the user chooses; "" = the usual names.
struct ColumnNames {
  std::string text, label;
};

/// Reads UTF-8 text: a table (TSV as GLUE's train.tsv, or CSV; see read_table) or JSON records (for_each_record).
///
/// - A column is called `text` (or `sentence`) and one `label` (or `labels`), in any order, or as `columns` says;
///   further columns are not used. A second text (`text_pair`, `sentence2` and so on) is an error unless `columns`
///   names the text.
/// - A text may be empty; the label of a single_label may not.
/// - Labels are of the type multi_label if they are lists of names, or if no column is called `label` and two or more
///   columns hold 0 or 1 (in JSON also false or true) in every row. They are of the type regression if one is a number
///   with a fraction in JSON. Otherwise they are of the type `otherwise`. A single_label is a name: in JSON a text, a
///   whole number, true or false. A multi_label is a list of different names (in a table written as JSON), one name, or
///   none if the field is empty. For regression the label is a number.
/// - label_names are the distinct labels: in numeric order if all are integers, else in order of their bytes.
/// - Notes say how many texts are empty, which labels differ only by blanks, and which other columns hold words.
///
/// Throws InvalidInput that names file, line, field, rule and value; also for a file without rows, with fewer than two
/// different labels (single_label), or without any label (multi_label).
TextData read_texts(const std::filesystem::path& path, const ColumnNames& columns = {},
                    ProblemType otherwise = ProblemType::single_label);

/// Does the same for test data: labels are of the kind `problem_type` and are numbered as in `label_names`; any other
/// label is an error.
TextData read_texts(const std::filesystem::path& path, const std::vector<std::string>& label_names,
                    const ColumnNames& columns = {}, ProblemType problem_type = ProblemType::single_label);

/// Reads texts to be labelled by a model: a table or JSON as above, whose label column may be missing, or a .txt file
/// with a text per line, whose empty lines at the end are skipped. A .txt file has no labels.
TextData read_texts_to_label(const std::filesystem::path& path, const std::vector<std::string>& label_names,
                             const ColumnNames& columns = {}, ProblemType problem_type = ProblemType::single_label);

}  // namespace frostpipe
