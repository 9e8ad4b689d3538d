#include "executor/data/text_data.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "executor/data/error_values.h"
#include "profiles/error.h"
#include "profiles/files.h"

namespace frostpipe {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

/// Lines without their ends and without the empty ones at the end of the file.
std::vector<std::string_view> lines_of(std::string_view content) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (content.starts_with(kByteOrderMark)) content.remove_prefix(kByteOrderMark.size());
  std::vector<std::string_view> lines = split(content, '\n');
  for (std::string_view& line : lines)
    if (line.ends_with('\r')) line.remove_suffix(1);
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

struct Columns {
  std::size_t text = 0;
  std::size_t label = 0;
  std::size_t number = 0;
};

Columns read_header(const std::string& place, std::string_view header) {
  const std::vector<std::string_view> names = split(header, '\t');
  const auto only_column = [&](const char* rule, auto is_wanted) {
    const auto found = std::find_if(names.begin(), names.end(), is_wanted);
    if (std::count_if(names.begin(), names.end(), is_wanted) != 1) throw InvalidInput(place, rule, in_quotes(header));
    return static_cast<std::size_t>(found - names.begin());
  };
  return {.text = only_column("the header must name one column \"text\" (or \"sentence\"), between tabs",
                              [](std::string_view name) { return name == "text" || name == "sentence"; }),
          .label = only_column("the header must name one column \"label\", between tabs",
                               [](std::string_view name) { return name == "label"; }),
          .number = names.size()};
}

struct LabelledText {
  std::size_t line;  // from 1
  std::string text;
  std::string label;
};

std::string place_of(const std::filesystem::path& path, std::size_t line) {
  return path.string() + ":" + std::to_string(line);
}

std::vector<LabelledText> read_rows(const std::filesystem::path& path) {
  const std::string content = read_named_file(path, kAnySize);
  const std::vector<std::string_view> lines = lines_of(content);
  const Columns columns = read_header(place_of(path, 1), lines.empty() ? std::string_view() : lines.front());
  std::vector<LabelledText> rows;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::string place = place_of(path, i + 1);
    const std::vector<std::string_view> fields = split(lines[i], '\t');
    if (fields.size() != columns.number)
      throw InvalidInput(place, "must have " + std::to_string(columns.number) + " fields between tabs, as the header",
                         in_quotes(lines[i]) + " with " + std::to_string(fields.size()));
    const std::string_view label = fields[columns.label];
    if (label.find_first_not_of(' ') == std::string_view::npos)
      throw InvalidInput(place, "the label must not be empty", in_quotes(label));
    rows.push_back({i + 1, std::string(fields[columns.text]), std::string(label)});
  }
  if (rows.empty()) throw InvalidInput(path.string(), "must have a row after the header", "without one");
  if (rows.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw InvalidInput(path.string(), "must have fewer than 2^31 rows", std::to_string(rows.size()));
  return rows;
}

std::optional<std::int64_t> as_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string> distinct_labels(const std::vector<LabelledText>& rows) {
  std::vector<std::string> names;
  for (const LabelledText& row : rows) names.push_back(row.label);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  const bool all_integers =
      std::all_of(names.begin(), names.end(), [](const std::string& name) { return as_integer(name).has_value(); });
  // Stable: "01" stays before "1".
  if (all_integers)
    std::stable_sort(names.begin(), names.end(),
                     [](const std::string& a, const std::string& b) { return as_integer(a) < as_integer(b); });
  return names;
}

TextData with_labels_numbered(const std::filesystem::path& path, std::vector<LabelledText> rows,
                              const std::vector<std::string>& label_names) {
  std::map<std::string_view, int> number_of;
  for (const std::string& name : label_names) number_of.emplace(name, static_cast<int>(number_of.size()));
  FROSTPIPE_CHECK(number_of.size() == label_names.size(), "label names differ from each other");
  TextData data{.texts = {}, .labels = {}, .label_names = label_names};
  for (LabelledText& row : rows) {
    const auto found = number_of.find(row.label);
    if (found == number_of.end())
      throw InvalidInput(place_of(path, row.line),
                         "the label must be one that the model knows (" + in_quotes(label_names) + ")",
                         in_quotes(row.label));
    data.texts.push_back(std::move(row.text));
    data.labels.push_back(found->second);
  }
  return data;
}

}  // namespace

TextData read_tsv(const std::filesystem::path& path) {
  std::vector<LabelledText> rows = read_rows(path);
  const std::vector<std::string> label_names = distinct_labels(rows);
  if (label_names.size() < 2)
    throw InvalidInput(path.string(), "must have at least two different labels",
                       "all " + in_quotes(label_names.front()));
  return with_labels_numbered(path, std::move(rows), label_names);
}

TextData read_tsv(const std::filesystem::path& path, const std::vector<std::string>& label_names) {
  return with_labels_numbered(path, read_rows(path), label_names);
}

}  // namespace frostpipe
