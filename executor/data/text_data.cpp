#include "executor/data/text_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/error_values.h"
#include "base/read_table.h"
#include "base/separated_values.h"
#include "executor/data/records_json.h"
#include "executor/data/text_file.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;

bool is_blank_character(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

bool is_blank(const std::string& text) { return std::all_of(text.begin(), text.end(), is_blank_character); }

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

struct Columns {
  std::size_t text = 0;
  std::optional<std::size_t> label;
};

/// The names that a column of texts may have, for a rule and as they are compared.
struct Wanted {
  std::vector<std::string> names;
  std::string rule;  // "text" (or "sentence")
};

Wanted wanted_text(const ColumnNames& columns) {
  if (!columns.text.empty()) return {{columns.text}, in_quotes(columns.text)};
  return {{"text", "sentence"}, "\"text\" (or \"sentence\")"};
}

std::string wanted_label(const ColumnNames& columns) { return columns.label.empty() ? "label" : columns.label; }

Columns read_header(const std::string& place, const TableRow& header, const ColumnNames& names, bool needs_labels) {
  const auto column = [&](const std::string& wanted, bool is_needed, auto is_wanted) -> std::optional<std::size_t> {
    const auto count = std::count_if(header.fields.begin(), header.fields.end(), is_wanted);
    if (count > 1 || (count == 0 && is_needed))
      throw InvalidInput(place, fmt::format("the header must name one column {}, between tabs or commas", wanted),
                         in_quotes(header.text));
    if (count == 0) return std::nullopt;
    return std::find_if(header.fields.begin(), header.fields.end(), is_wanted) - header.fields.begin();
  };
  const Wanted text = wanted_text(names);
  const std::string label = wanted_label(names);
  return {.text = *column(text.rule, true, [&](const std::string& name) { return contains(text.names, name); }),
          .label = column(in_quotes(label), needs_labels, [&](const std::string& name) { return name == label; })};
}

struct Row {
  RecordPlace place;
  std::string text;
  std::optional<std::string> label;
};

/// Throws InvalidInput for none, or too many; of the labels, where one is blank.
std::vector<Row> checked(const std::filesystem::path& path, std::vector<Row> rows) {
  for (const Row& row : rows) {
    if (row.label && is_blank(*row.label))
      throw InvalidInput(row.place.in(path), "the label must not be empty", in_quotes(*row.label));
  }
  if (rows.empty()) throw InvalidInput(path.string(), "must have a row after the header", "without one");
  if (rows.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw InvalidInput(path.string(), "must have fewer than 2^31 rows", std::to_string(rows.size()));
  return rows;
}

/// Of a table; all have a label, or none.
std::vector<Row> rows_of_table(const std::filesystem::path& path, const ColumnNames& names, bool needs_labels) {
  const std::string content = read_utf8_file(path);
  std::vector<TableRow> table = read_table(path, content);
  const Columns columns =
      read_header(RecordPlace{.number = 1}.in(path), table.empty() ? TableRow() : table.front(), names, needs_labels);
  std::vector<Row> rows;
  for (std::size_t i = 1; i < table.size(); ++i) {
    Row row{.place = {.number = table[i].line}, .text = std::move(table[i].fields[columns.text]), .label = {}};
    if (columns.label) row.label = std::move(table[i].fields[*columns.label]);
    rows.push_back(std::move(row));
  }
  return rows;
}

const Json* member(const Json& record, const std::string& name) {
  const auto found = record.find(name);
  return found == record.end() || found->is_null() ? nullptr : &*found;
}

std::string text_of_record(const Json& record, const std::string& place, const Wanted& wanted) {
  std::vector<std::string> found;
  for (const std::string& name : wanted.names)
    if (member(record, name)) found.push_back(name);
  if (found.size() != 1)
    throw InvalidInput(place, fmt::format("must have one field {} (--text-column names another)", wanted.rule),
                       "an object with " + shown_fields(record));
  const Json& text = record.at(found.front());
  if (!text.is_string()) throw InvalidInput(place + ": " + found.front(), "must be a text", shown(text));
  return text;
}

std::string label_of_record(const Json& label, const std::string& place) {
  if (label.is_string()) return label;
  if (label.is_number_integer() || label.is_boolean()) return label.dump();
  throw InvalidInput(place, "must be a text, a whole number, true or false", shown(label));
}

/// Of JSON; all have a label, or none.
std::vector<Row> rows_of_json(const std::filesystem::path& path, const ColumnNames& names, bool needs_labels) {
  const Wanted wanted = wanted_text(names);
  const std::string label = wanted_label(names);
  std::vector<Row> rows;
  for_each_record(path, [&](const Json& record, const RecordPlace& at) {
    const std::string place = at.in(path);
    Row row{.place = at, .text = text_of_record(record, place, wanted), .label = {}};
    if (const Json* found = member(record, label)) row.label = label_of_record(*found, place + ": " + label);
    const bool must_have = needs_labels || (!rows.empty() && rows.front().label);
    if (must_have && !row.label)
      throw InvalidInput(place, fmt::format("must have the field {} (--label-column names another)", in_quotes(label)),
                         "an object with " + shown_fields(record));
    if (!must_have && !rows.empty() && row.label)
      throw InvalidInput(place + ": " + label, "must be there in all lines or in none", "not in the first");
    rows.push_back(std::move(row));
    return true;
  });
  return rows;
}

std::vector<Row> read_rows(const std::filesystem::path& path, const ColumnNames& names, bool needs_labels) {
  return checked(
      path, is_json_file(path) ? rows_of_json(path, names, needs_labels) : rows_of_table(path, names, needs_labels));
}

std::optional<std::int64_t> as_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string> distinct_labels(const std::vector<Row>& rows) {
  std::vector<std::string> names;
  for (const Row& row : rows) names.push_back(*row.label);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  const bool all_integers =
      std::all_of(names.begin(), names.end(), [](const std::string& name) { return as_integer(name).has_value(); });
  // The sort is stable: "01" stays before "1".
  if (all_integers)
    std::stable_sort(names.begin(), names.end(),
                     [](const std::string& a, const std::string& b) { return as_integer(a) < as_integer(b); });
  return names;
}

std::string without_blanks(std::string text) {
  std::erase_if(text, is_blank_character);
  return text;
}

/// How many texts are empty, and which labels differ by blanks alone.
std::vector<std::string> notes_on(const std::filesystem::path& path, const std::vector<Row>& rows) {
  std::vector<std::string> notes;
  const auto is_empty = [](const Row& row) { return is_blank(row.text); };
  if (const auto first = std::find_if(rows.begin(), rows.end(), is_empty); first != rows.end()) {
    const auto count = std::count_if(rows.begin(), rows.end(), is_empty);
    notes.push_back(count == 1
                        ? fmt::format("{}: the text is empty", first->place.in(path))
                        : fmt::format("{}: {} texts are empty, this being the first", first->place.in(path), count));
  }
  std::map<std::string, std::map<std::string, int>> counts;  // of each spelling, by what is left without blanks
  for (const Row& row : rows)
    if (row.label) ++counts[without_blanks(*row.label)][*row.label];
  for (const auto& [label, spellings] : counts) {
    if (spellings.size() < 2) continue;
    std::vector<std::string> counted;
    for (const auto& [spelling, count] : spellings)
      counted.push_back(fmt::format("{} ({} time{})", in_quotes(spelling), count, count == 1 ? "" : "s"));
    notes.push_back(fmt::format("{}: these labels differ by blanks alone, and count as different ones: {}",
                                path.string(), fmt::join(counted, ", ")));
  }
  return notes;
}

/// Labels, where there are any, are among `label_names`.
TextData with_labels_numbered(const std::filesystem::path& path, std::vector<Row> rows,
                              const std::vector<std::string>& label_names) {
  std::map<std::string_view, int> number_of;
  for (const std::string& name : label_names) number_of.emplace(name, static_cast<int>(number_of.size()));
  FROSTPIPE_CHECK(number_of.size() == label_names.size(), "label names differ from each other");
  TextData data{.texts = {}, .labels = {}, .label_names = label_names, .notes = notes_on(path, rows)};
  for (Row& row : rows) {
    data.texts.push_back(std::move(row.text));
    if (!row.label) continue;
    const auto found = number_of.find(*row.label);
    if (found == number_of.end())
      throw InvalidInput(row.place.in(path),
                         "the label must be one that the model knows (" + in_quotes(label_names) + ")",
                         in_quotes(*row.label));
    data.labels.push_back(found->second);
  }
  return data;
}

/// A text per line.
std::vector<Row> read_lines(const std::filesystem::path& path) {
  const std::string content = read_utf8_file(path);
  std::vector<Row> rows;
  for (const std::string_view line : lines_of(content))
    rows.push_back({.place = {.number = rows.size() + 1}, .text = std::string(line), .label = {}});
  while (!rows.empty() && rows.back().text.empty()) rows.pop_back();
  if (rows.empty()) throw InvalidInput(path.string(), "must have a line of text", "without one");
  return rows;
}

}  // namespace

TextData read_texts(const std::filesystem::path& path, const ColumnNames& columns) {
  std::vector<Row> rows = read_rows(path, columns, /*needs_labels=*/true);
  const std::vector<std::string> label_names = distinct_labels(rows);
  if (label_names.size() < 2)
    throw InvalidInput(path.string(), "must have at least two different labels",
                       "all " + in_quotes(label_names.front()));
  return with_labels_numbered(path, std::move(rows), label_names);
}

TextData read_texts(const std::filesystem::path& path, const std::vector<std::string>& label_names,
                    const ColumnNames& columns) {
  return with_labels_numbered(path, read_rows(path, columns, /*needs_labels=*/true), label_names);
}

TextData read_texts_to_label(const std::filesystem::path& path, const std::vector<std::string>& label_names,
                             const ColumnNames& columns) {
  return with_labels_numbered(
      path, path.extension() == ".txt" ? read_lines(path) : read_rows(path, columns, /*needs_labels=*/false),
      label_names);
}

}  // namespace frostpipe
