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

/// A text with its label as it stands in the file: of a table a text, of JSON any value.
struct TextRow {
  RecordPlace place;
  std::string text;
  std::optional<nlohmann::json> label;
  std::string label_field{};  // of JSON, for errors

  std::string label_place(const std::filesystem::path& path) const;
};

struct TextRows {
  std::vector<TextRow> rows;  // all have a label, or none
  /// Where columns of 0 and 1 stand for the labels: their names; each row's label is then the list of those with 1.
  std::vector<std::string> flag_names{};
};

struct WantedRows {
  ColumnNames columns;
  bool needs_labels = true;
  /// Columns that hold 0 or 1 in each row, two or more, count as labels where no column holds them.
  bool takes_flags = true;
  std::vector<std::string> flag_names{};  // if any: these, and all of them
};

/// The rows of a table or of records of JSON. Throws InvalidInput that names file, line, field, rule and value; also
/// where there is none.
TextRows read_text_rows(const std::filesystem::path& path, const WantedRows& wanted);

/// Returns whether a record without a column of labels has some of 0 and 1, as WantedRows says.
bool has_flags(const nlohmann::json& record);

}  // namespace frostpipe
