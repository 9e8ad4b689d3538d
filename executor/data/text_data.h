#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace frostpipe {

/// Texts for classification, in the order of the file.
struct TextData {
  std::vector<std::string> texts;
  /// One per text, or none at all: an index into label_names.
  std::vector<int> labels;
  std::vector<std::string> label_names;
  /// What is no error, but may be a slip: sentences that name the file, for people.
  std::vector<std::string> notes;

  bool operator==(const TextData&) const = default;
};

/// Names of columns or JSON fields that the user chooses; "" = the usual names.
struct ColumnNames {
  std::string text, label;
};

/// Reads UTF-8 text: a table (TSV as GLUE's train.tsv, or CSV; see read_table) or JSON records (for_each_record).
///
/// - A column is called `text` (or `sentence`) and one `label`, in any order, or as `columns` says; further columns are
///   ignored.
/// - A text may be empty, a label not. In JSON a label is a text, a whole number, true or false. Notes: how many texts
///   are empty, and which labels differ by blanks alone.
/// - label_names are the distinct labels: in numeric order if all are integers, else in order of their bytes.
///
/// Throws InvalidInput that names file, line, field, rule and value; also for a file without rows or with fewer than
/// two labels.
TextData read_texts(const std::filesystem::path& path, const ColumnNames& columns = {});

/// The same for data to be tested on: labels are those of `label_names`, in its order, and one outside it is an error.
TextData read_texts(const std::filesystem::path& path, const std::vector<std::string>& label_names,
                    const ColumnNames& columns = {});

/// Reads texts to be labelled by a model: a table or JSON as above, whose label column may be missing, or a .txt file
/// with a text per line; empty lines at its end are skipped. Then there are no labels.
TextData read_texts_to_label(const std::filesystem::path& path, const std::vector<std::string>& label_names,
                             const ColumnNames& columns = {});

}  // namespace frostpipe
