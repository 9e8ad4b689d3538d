#include "executor/data/text_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/error_values.h"
#include "base/separated_values.h"
#include "executor/data/text_file.h"
#include "executor/data/text_rows.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;

bool is_blank_character(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

bool is_blank(const std::string& text) { return std::all_of(text.begin(), text.end(), is_blank_character); }

/// Returns the name of one label. `label` is the label of the row, or an element of it if that is a list.
std::string name_of(const Json& label, const TextRow& row, const std::filesystem::path& path) {
  if (label.is_number_integer() || label.is_boolean()) return label.dump();
  if (!label.is_string())
    throw InvalidInput(row.label_place(path), "must be a text, a whole number, true or false", shown(label));
  if (is_blank(label))
    throw InvalidInput(row.place.in(path), "the label must not be empty",
                       in_quotes(label.get_ref<const std::string&>()));
  return label;
}

/// Reads the labels of a text that may have any number of them.
std::vector<std::string> names_of(const TextRow& row, const std::filesystem::path& path) {
  Json label = *row.label;
  if (label.is_string() && is_blank(label)) return {};
  if (label.is_string() && trimmed(label.get_ref<const std::string&>()).starts_with('[')) {
    label = Json::parse(label.get_ref<const std::string&>(), nullptr, /*allow_exceptions=*/false);
    if (!label.is_array())
      throw InvalidInput(row.label_place(path),
                         "the labels must be a list of JSON, such as [\"a\", \"b\"], or one name", shown(*row.label));
  }
  if (!label.is_array()) return {name_of(label, row, path)};
  std::vector<std::string> names;
  for (const Json& one : label) {
    names.push_back(name_of(one, row, path));
    if (std::ranges::find(names.begin(), names.end() - 1, names.back()) != names.end() - 1)
      throw InvalidInput(row.label_place(path),
                         "the labels must be different names; labels as 0 and 1 must be columns, one for each label",
                         in_quotes(names.back()) + " twice");
  }
  return names;
}

double number_of(const TextRow& row, const std::filesystem::path& path) {
  const Json& label = *row.label;
  if (label.is_number()) return label;
  double number = 0;
  if (label.is_string()) {
    const std::string_view text = trimmed(label.get_ref<const std::string&>());
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size() && std::isfinite(number)) return number;
  }
  throw InvalidInput(row.label_place(path),
                     "the label must be a number, as config.json (by its problem_type or a single label) or a label "
                     "with a fraction asks for regression",
                     shown(label));
}

/// Returns the kind of the labels if their form shows it, otherwise `otherwise`.
ProblemType problem_type_of(const std::vector<TextRow>& rows, ProblemType otherwise) {
  for (const TextRow& row : rows) {
    if (row.label->is_array()) return ProblemType::multi_label;
    if (row.label->is_number_float()) return ProblemType::regression;
  }
  return otherwise;
}

/// Returns the names of every row's labels. Every row must have a value in `label`.
std::vector<std::vector<std::string>> names_of_all(const std::vector<TextRow>& rows, ProblemType problem_type,
                                                   const std::filesystem::path& path) {
  std::vector<std::vector<std::string>> names;
  for (const TextRow& row : rows)
    names.push_back(problem_type == ProblemType::multi_label ? names_of(row, path)
                                                             : std::vector{name_of(*row.label, row, path)});
  return names;
}

std::optional<std::int64_t> as_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string> distinct_labels(const std::vector<std::vector<std::string>>& labels) {
  std::vector<std::string> names;
  for (const std::vector<std::string>& of_row : labels) names.insert(names.end(), of_row.begin(), of_row.end());
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

/// Reports how many texts are empty, and which labels differ only by blanks.
std::vector<std::string> notes_on(const std::filesystem::path& path, const std::vector<TextRow>& rows,
                                  const std::vector<std::vector<std::string>>& labels) {
  std::vector<std::string> notes;
  const auto is_empty = [](const TextRow& row) { return is_blank(row.text); };
  if (const auto first = std::find_if(rows.begin(), rows.end(), is_empty); first != rows.end()) {
    const auto count = std::count_if(rows.begin(), rows.end(), is_empty);
    notes.push_back(count == 1
                        ? fmt::format("{}: the text is empty", first->place.in(path))
                        : fmt::format("{}: {} texts are empty, this being the first", first->place.in(path), count));
  }
  std::map<std::string, std::map<std::string, int>> counts;  // counts of each spelling, by the label without blanks
  for (const std::vector<std::string>& of_row : labels)
    for (const std::string& label : of_row) ++counts[without_blanks(label)][label];
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

/// Makes the data, with labels as numbers. `labels` is empty, or has the names of each row's labels, which must be
/// among `label_names`.
TextData numbered(const std::filesystem::path& path, std::vector<TextRow> rows,
                  const std::vector<std::vector<std::string>>& labels, const std::vector<std::string>& label_names,
                  ProblemType problem_type) {
  std::map<std::string_view, int> number_of_name;
  for (const std::string& name : label_names) number_of_name.emplace(name, static_cast<int>(number_of_name.size()));
  FROSTPIPE_CHECK(number_of_name.size() == label_names.size(), "label names differ from each other");
  TextData data{.texts = {},
                .problem_type = problem_type,
                .labels = {},
                .label_names = label_names,
                .notes = notes_on(path, rows, labels)};
  const auto number = [&](std::size_t row, const std::string& name) {
    const auto found = number_of_name.find(name);
    if (found == number_of_name.end())
      throw InvalidInput(rows[row].place.in(path),
                         "the label must be one that the model knows (" + in_quotes(label_names) + ")",
                         in_quotes(name));
    return found->second;
  };
  for (std::size_t row = 0; row < labels.size(); ++row) {
    if (problem_type == ProblemType::single_label) {
      data.labels.push_back(number(row, labels[row].front()));
      continue;
    }
    std::vector<double>& targets = data.targets.emplace_back(label_names.size(), 0.0);
    for (const std::string& name : labels[row]) targets[number(row, name)] = 1;
  }
  for (TextRow& row : rows) data.texts.push_back(std::move(row.text));
  return data;
}

TextData with_numbers(const std::filesystem::path& path, std::vector<TextRow> rows) {
  TextData data{.texts = {},
                .problem_type = ProblemType::regression,
                .labels = {},
                .label_names = {"LABEL_0"},
                .notes = notes_on(path, rows, {})};
  for (TextRow& row : rows) {
    if (row.label) data.targets.push_back({number_of(row, path)});
    data.texts.push_back(std::move(row.text));
  }
  return data;
}

/// Makes the data with the labels of the rows, if they have any: numbers for regression, else indices into
/// `label_names`, where a label that is not among them is an error.
TextData with_known_labels(const std::filesystem::path& path, std::vector<TextRow> rows,
                           const std::vector<std::string>& label_names, ProblemType problem_type) {
  if (problem_type == ProblemType::regression) return with_numbers(path, std::move(rows));
  std::vector<std::vector<std::string>> labels;
  if (rows.front().label) labels = names_of_all(rows, problem_type, path);
  return numbered(path, std::move(rows), labels, label_names, problem_type);
}

/// Reads a text per line.
std::vector<TextRow> read_lines(const std::filesystem::path& path) {
  const std::string content = read_utf8_file(path);
  std::vector<TextRow> rows;
  for (const std::string_view line : lines_of(content))
    rows.push_back({.place = {.number = rows.size() + 1}, .text = std::string(line), .label = {}});
  while (!rows.empty() && rows.back().text.empty()) rows.pop_back();
  if (rows.empty()) throw InvalidInput(path.string(), "must have a line of text", "without one");
  return rows;
}

WantedRows wanted_rows(const ColumnNames& columns, bool needs_labels, const std::vector<std::string>& label_names,
                       ProblemType problem_type) {
  const bool is_several = problem_type == ProblemType::multi_label;
  return {.columns = columns,
          .needs_labels = needs_labels,
          .takes_flags = is_several && columns.label.empty(),
          .flag_names = is_several ? label_names : std::vector<std::string>()};
}

TextData with_notes(TextData data, const std::vector<std::string>& notes) {
  data.notes.insert(data.notes.end(), notes.begin(), notes.end());
  return data;
}

}  // namespace

TextData read_texts(const std::filesystem::path& path, const ColumnNames& columns, ProblemType otherwise) {
  TextRows read = read_text_rows(path, {.columns = columns, .takes_flags = columns.label.empty()});
  const ProblemType problem_type = problem_type_of(read.rows, otherwise);
  if (problem_type == ProblemType::regression) return with_notes(with_numbers(path, std::move(read.rows)), read.notes);
  const std::vector<std::vector<std::string>> labels = names_of_all(read.rows, problem_type, path);
  const std::vector<std::string> names = read.flag_names.empty() ? distinct_labels(labels) : read.flag_names;
  if (problem_type == ProblemType::single_label && names.size() < 2)
    throw InvalidInput(path.string(), "must have at least two different labels", "all " + in_quotes(names.front()));
  if (names.empty()) throw InvalidInput(path.string(), "must have a text with a label", "without one");
  return with_notes(numbered(path, std::move(read.rows), labels, names, problem_type), read.notes);
}

TextData read_texts(const std::filesystem::path& path, const std::vector<std::string>& label_names,
                    const ColumnNames& columns, ProblemType problem_type) {
  TextRows read = read_text_rows(path, wanted_rows(columns, /*needs_labels=*/true, label_names, problem_type));
  return with_notes(with_known_labels(path, std::move(read.rows), label_names, problem_type), read.notes);
}

TextData read_texts_to_label(const std::filesystem::path& path, const std::vector<std::string>& label_names,
                             const ColumnNames& columns, ProblemType problem_type) {
  TextRows read = path.extension() == ".txt"
                      ? TextRows{.rows = read_lines(path)}
                      : read_text_rows(path, wanted_rows(columns, /*needs_labels=*/false, label_names, problem_type));
  return with_notes(with_known_labels(path, std::move(read.rows), label_names, problem_type), read.notes);
}

}  // namespace frostpipe
