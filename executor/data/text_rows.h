#pragma once
// Implementation header: include it from .cpp files only.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "executor/data/records_json.h"
#include "executor/data/text_data.h"

namespace frostpipe {

/// A text with its label as in the file: a string from a table, any value from JSON.
struct TextRow {
  RecordPlace place;
  std::string text;
  std::optional<nlohmann::json> label;
  std::string label_field{};  // field of JSON that holds the label, for errors

  /// Returns the location of the label for errors: that of the row and, in JSON, the field.
  std::string label_place(const std::filesystem::path& path) const;
};

struct TextRows {
  std::vector<TextRow> rows;  // all have a label, or none
  /// The names of the labels if each has a column of 0 and 1; a row's label is then the list of the names with 1.
  std::vector<std::string> flag_names{};
  std::vector<std::string> notes{};  // for the user: the fields that are not used
};

struct WantedRows {
  ColumnNames columns;
  bool needs_labels = true;
  /// If no column holds labels, two or more columns that hold 0 or 1 (in JSON also false or true) in each row count as
  /// labels.
  bool takes_flags = true;
  std::vector<std::string> flag_names{};  // names of these columns, all of which must be there; empty = any
};

/// Reads the rows of a table or the records of JSON. Throws InvalidInput that names file, line, field, rule and value,
/// also if there are no rows, and for pairs of texts if `wanted` does not name the column of one.
TextRows read_text_rows(const std::filesystem::path& path, const WantedRows& wanted);

/// Throws InvalidInput that names `place` if a record has a second text, as in `sentence1` and `sentence2`, unless
/// `columns` names the text.
void require_one_text(const nlohmann::json& record, const ColumnNames& columns, const std::string& place);

/// Returns whether two or more fields of a JSON record are 0, 1, false or true, as WantedRows::takes_flags needs them.
bool has_flags(const nlohmann::json& record);

}  // namespace frostpipe
