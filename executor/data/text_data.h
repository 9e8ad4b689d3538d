#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "profiles/transformer/transformer_config.h"

namespace frostpipe {

/// Texts for classification, in the order of the file.
struct TextData {
  std::vector<std::string> texts;
  ProblemType problem_type = ProblemType::single_label;  // what their labels are
  /// With single_label: one index into label_names per text, or none at all.
  std::vector<int> labels;
  /// With the other types: 1 or 0 for each of label_names, whether the text has that label; or the number itself.
  std::vector<std::vector<double>> targets{};
  std::vector<std::string> label_names;  // of regression LABEL_0, as transformers calls it
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
///   further columns are ignored.
/// - A text may be empty, the label of a single_label not.
/// - Lists of names are several labels, and so are two or more columns that hold 0 or 1 in every row where none is
/// called
///   `label`. A fraction in JSON makes labels numbers. What else a label is, `otherwise` says: a name (in JSON a text,
///   a whole number, true or false); a list of names, which a table has as JSON, or one name, or none where it is
///   empty; or a number.
/// - label_names are the distinct labels: in numeric order if all are integers, else in order of their bytes. Notes:
/// how
///   many texts are empty, and which labels differ by blanks alone.
///
/// Throws InvalidInput that names file, line, field, rule and value; also for a file without rows, with fewer than two
/// labels to choose from, or without any of several.
TextData read_texts(const std::filesystem::path& path, const ColumnNames& columns = {},
                    ProblemType otherwise = ProblemType::single_label);

/// The same for data to be tested on: labels are as `problem_type` says and those of `label_names`, in its order, and
/// one outside it is an error.
TextData read_texts(const std::filesystem::path& path, const std::vector<std::string>& label_names,
                    const ColumnNames& columns = {}, ProblemType problem_type = ProblemType::single_label);

/// Reads texts to be labelled by a model: a table or JSON as above, whose label column may be missing, or a .txt file
/// with a text per line; empty lines at its end are skipped. Then there are no labels.
TextData read_texts_to_label(const std::filesystem::path& path, const std::vector<std::string>& label_names,
                             const ColumnNames& columns = {}, ProblemType problem_type = ProblemType::single_label);

}  // namespace frostpipe
