#include "executor/data/text_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/error_values.h"
#include "base/read_table.h"
#include "executor/data/text_file.h"
#include "executor/data/unused_fields.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;
using Flags = std::map<std::string, bool>;

constexpr std::size_t kFewestFlags = 2;

/// The names that the second text of a pair has.
constexpr std::array<const char*, 5> kSecondTexts{"text_pair", "sentence2", "text2", "question2", "hypothesis"};
constexpr const char* kOneText =
    "one text: pairs of texts are not supported (--text-column NAME trains on one of them)";

/// The names that a column may have, the preferred one first, and their text for messages.
struct WantedColumn {
  std::vector<std::string> names;
  std::string rule;  // "text" (or "sentence")
};

WantedColumn wanted_text(const ColumnNames& columns) {
  if (!columns.text.empty()) return {{columns.text}, in_quotes(columns.text)};
  return {{"text", "sentence"}, "\"text\" (or \"sentence\")"};
}

WantedColumn wanted_label(const ColumnNames& columns) {
  if (!columns.label.empty()) return {{columns.label}, in_quotes(columns.label)};
  return {{"label", "labels"}, "\"label\" (or \"labels\")"};
}

std::optional<bool> as_flag(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number() && (value == 0 || value == 1)) return value == 1;
  if (value == "0" || value == "1") return value == "1";
  return std::nullopt;
}

const Json* member(const Json& record, const std::string& name) {
  const auto found = record.find(name);
  return found == record.end() || found->is_null() ? nullptr : &*found;
}

Flags flags_of(const Json& record) {
  Flags flags;
  for (const auto& [name, value] : record.items())
    if (const auto flag = value.is_string() ? std::nullopt : as_flag(value)) flags[name] = *flag;
  return flags;
}

/// Makes columns of 0 and 1 the labels if there are enough that all rows have: two, or all of wanted.flag_names.
void take_flags(const WantedRows& wanted, std::vector<Flags> flags, TextRows& read) {
  std::vector<std::string>& names = read.flag_names;
  for (const auto& [name, is_set] : flags.front()) names.push_back(name);
  const auto is_missing = [&](const std::string& name) {
    return std::ranges::any_of(flags, [&](const Flags& of_row) { return !of_row.contains(name); }) ||
           (!wanted.flag_names.empty() && std::ranges::find(wanted.flag_names, name) == wanted.flag_names.end());
  };
  std::erase_if(names, is_missing);
  if (names.size() < std::max(kFewestFlags, wanted.flag_names.size())) return names.clear();
  for (std::size_t i = 0; i < flags.size(); ++i) {
    read.rows[i].label = Json::array();
    for (const std::string& name : names)
      if (flags[i].at(name)) read.rows[i].label->push_back(name);
  }
}

struct Columns {
  std::size_t text = 0;
  std::optional<std::size_t> label;
};

std::optional<std::size_t> column_of(const std::string& place, const TableRow& header, const WantedColumn& wanted,
                                     bool is_needed) {
  const auto is_wanted = [&](const std::string& name) {
    return std::ranges::find(wanted.names, name) != wanted.names.end();
  };
  const auto count = std::ranges::count_if(header.fields, is_wanted);
  if (count > 1 || (count == 0 && is_needed))
    throw InvalidInput(place, fmt::format("the header must name one column {}, between tabs or commas", wanted.rule),
                       in_quotes(header.text));
  if (count == 0) return std::nullopt;
  return std::ranges::find_if(header.fields, is_wanted) - header.fields.begin();
}

void require_one_text(const TableRow& header, const ColumnNames& columns, const std::string& place) {
  const auto is_in_header = [&](const char* name) {
    return std::ranges::find(header.fields, name) != header.fields.end();
  };
  if (columns.text.empty() && std::ranges::any_of(kSecondTexts, is_in_header))
    throw InvalidInput(place, fmt::format("the header must name {}", kOneText), in_quotes(header.text));
}

/// Returns a note that names the columns, other than the text and the label, that have words; nothing if there are
/// none.
std::vector<std::string> note_on_columns(const std::filesystem::path& path, const std::vector<TableRow>& table,
                                         const Columns& columns) {
  UnusedFields unused;
  for (std::size_t k = 0; !table.empty() && k < table[0].fields.size(); ++k) {
    const auto has_words = [&](const TableRow& row) { return &row != &table[0] && holds_words(row.fields[k]); };
    const bool is_used = k == columns.text || k == columns.label;
    if (!is_used && std::ranges::any_of(table, has_words)) unused.add(table[0].fields[k]);
  }
  return unused.note(path);
}

TextRows rows_of_table(const std::filesystem::path& path, const WantedRows& wanted) {
  const std::string content = read_utf8_file(path);
  std::vector<TableRow> table = read_table(path, content);
  const std::string place = RecordPlace{.number = 1}.in(path);
  const TableRow header = table.empty() ? TableRow() : table.front();
  require_one_text(header, wanted.columns, place);
  const WantedColumn labels = wanted_label(wanted.columns);
  const Columns columns{.text = *column_of(place, header, wanted_text(wanted.columns), true),
                        .label = column_of(place, header, labels, wanted.needs_labels && !wanted.takes_flags)};
  TextRows read{.rows = {}, .notes = note_on_columns(path, table, columns)};
  std::vector<Flags> flags;
  for (std::size_t i = 1; i < table.size(); ++i) {
    Flags& of_row = flags.emplace_back();
    for (std::size_t k = 0; wanted.takes_flags && !columns.label && k < header.fields.size(); ++k)
      if (const auto flag = as_flag(table[i].fields[k]); flag && k != columns.text) of_row[header.fields[k]] = *flag;
    TextRow row{.place = {.number = table[i].line}, .text = std::move(table[i].fields[columns.text]), .label = {}};
    if (columns.label) row.label = std::move(table[i].fields[*columns.label]);
    read.rows.push_back(std::move(row));
  }
  if (!columns.label && !flags.empty()) take_flags(wanted, std::move(flags), read);
  if (wanted.needs_labels && read.flag_names.empty()) column_of(place, header, labels, true);
  return read;
}

/// Returns the name of the field that has the text.
std::string text_name(const Json& record, const std::string& place, const WantedColumn& wanted) {
  std::vector<std::string> found;
  for (const std::string& name : wanted.names)
    if (member(record, name)) found.push_back(name);
  if (found.size() != 1)
    throw InvalidInput(place, fmt::format("must have one field {} (--text-column names another)", wanted.rule),
                       "an object with " + shown_fields(record));
  const Json& text = record.at(found.front());
  if (!text.is_string()) throw InvalidInput(place + ": " + found.front(), "must be a text", shown(text));
  return found.front();
}

TextRows rows_of_json(const std::filesystem::path& path, const WantedRows& wanted) {
  const WantedColumn text = wanted_text(wanted.columns), labels = wanted_label(wanted.columns);
  TextRows read;
  UnusedFields unused;
  std::vector<Flags> flags;  // by row; empty if they cannot be the labels
  for_each_record(path, [&](const Json& record, const RecordPlace& at) {
    const std::string place = at.in(path);
    require_one_text(record, wanted.columns, place);
    const std::string name_of_text = text_name(record, place, text);
    TextRow row{.place = at, .text = record.at(name_of_text), .label = {}};
    for (const std::string& name : labels.names) {
      const Json* const found = row.label ? nullptr : member(record, name);
      if (!found) continue;
      row.label = *found;
      row.label_field = name;
    }
    const bool is_first = read.rows.empty();
    if (is_first && !row.label && wanted.takes_flags && has_flags(record)) flags.emplace_back();
    const bool may_lack = !flags.empty() || (!wanted.needs_labels && (is_first || !read.rows.front().label));
    if (!row.label && !may_lack)
      throw InvalidInput(place, fmt::format("must have the field {} (--label-column names another)", labels.rule),
                         "an object with " + shown_fields(record));
    if (!is_first && row.label && !read.rows.front().label)
      throw InvalidInput(place + ": " + row.label_field, "must be there in all lines or in none", "not in the first");
    if (!flags.empty()) {
      flags.resize(read.rows.size() + 1);
      flags.back() = flags_of(record);
    }
    unused.add(record, {name_of_text, row.label_field});
    read.rows.push_back(std::move(row));
    return true;
  });
  read.notes = unused.note(path);
  if (!flags.empty()) take_flags(wanted, std::move(flags), read);
  if (wanted.needs_labels && !read.rows.empty() && !read.rows.front().label)
    throw InvalidInput(path.string(),
                       fmt::format("must have the field {} (--label-column names another), or two or more fields that "
                                   "are 0 or 1 in every line",
                                   labels.rule),
                       "without them");
  return read;
}

}  // namespace

std::string TextRow::label_place(const std::filesystem::path& path) const {
  return label_field.empty() ? place.in(path) : fmt::format("{}: {}", place.in(path), label_field);
}

void require_one_text(const Json& record, const ColumnNames& columns, const std::string& place) {
  const auto is_in_record = [&](const char* name) { return member(record, name) != nullptr; };
  if (columns.text.empty() && std::ranges::any_of(kSecondTexts, is_in_record))
    throw InvalidInput(place, fmt::format("must have {}", kOneText), "an object with " + shown_fields(record));
}

bool has_flags(const Json& record) { return flags_of(record).size() >= kFewestFlags; }

TextRows read_text_rows(const std::filesystem::path& path, const WantedRows& wanted) {
  TextRows read = is_json_file(path) ? rows_of_json(path, wanted) : rows_of_table(path, wanted);
  if (read.rows.empty()) throw InvalidInput(path.string(), "must have a row after the header", "without one");
  if (read.rows.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw InvalidInput(path.string(), "must have fewer than 2^31 rows", std::to_string(read.rows.size()));
  return read;
}

}  // namespace frostpipe
