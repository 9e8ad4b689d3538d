#include "executor/data/records_json.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/error_values.h"
#include "base/parse_json.h"
#include "base/read_table.h"
#include "base/separated_values.h"
#include "executor/data/text_file.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;
using Take = std::function<bool(const Json&, const RecordPlace&)>;

constexpr std::string_view kBlanks = " \t\r\n";

std::string_view without_blanks_before(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
}

/// Parses a line that is one JSON value; returns a discarded value otherwise.
Json value_of(std::string_view line) { return Json::parse(line, nullptr, /*allow_exceptions=*/false); }

void need_object(const Json& value, const std::string& place) {
  if (!value.is_object())
    throw InvalidInput(place, "must be an object of JSON with the fields of a sample", shown(value));
}

void lines(const std::filesystem::path& path, std::string_view content, const Take& take) {
  RecordPlace place;
  bool is_any = false;
  for (const std::string_view line : lines_of(content)) {
    ++place.number;
    if (without_blanks_before(line).empty()) continue;
    is_any = true;
    const std::string where = place.in(path);
    require_shallow_json(line, where);
    const Json value = value_of(line);
    if (value.is_discarded()) {
      constexpr std::size_t kShown = 40;
      std::size_t begin = line.size() - std::min(line.size(), kShown);
      while (begin < line.size() && (static_cast<unsigned char>(line[begin]) & 0xC0) == 0x80) ++begin;
      throw InvalidInput(where,
                         "must be a whole object of JSON, in one line (is the file cut, or is it one array? that "
                         "is a .json file)",
                         fmt::format("no JSON, and ends in {}", in_quotes(line.substr(begin))));
    }
    need_object(value, where);
    if (!take(value, place)) return;
  }
  if (!is_any) throw InvalidInput(path.string(), "must have a line with an object of JSON", "without one");
}

void elements(const std::filesystem::path& path, std::string_view content, const Take& take) {
  const Json all = parse_json<Json>(content, path.string());
  if (all.empty()) throw InvalidInput(path.string(), "must be an array of objects", "an empty one");
  RecordPlace place{.number = 0, .is_line = false};
  for (const Json& value : all) {
    need_object(value, place.in(path));
    if (!take(value, place)) return;
    ++place.number;
  }
}

void rows(const std::filesystem::path& path, std::string_view content, const Take& take) {
  const std::vector<TableRow> table = read_table(path, content);
  if (table.size() < 2) throw InvalidInput(path.string(), "must have a row after the header", "without one");
  for (std::size_t i = 1; i < table.size(); ++i) {
    Json record = Json::object();
    for (std::size_t k = 0; k < table[i].fields.size(); ++k) record[table[0].fields[k]] = table[i].fields[k];
    if (!take(record, {.number = table[i].line})) return;
  }
}

bool is_array(std::string_view content) { return without_blanks_before(content).starts_with('['); }

}  // namespace

std::string RecordPlace::in(const std::filesystem::path& path) const {
  return is_line ? fmt::format("{}:{}", path.string(), number) : fmt::format("{}: [{}]", path.string(), number);
}

bool is_json_file(const std::filesystem::path& path) {
  const std::filesystem::path extension = path.extension();
  return extension == ".json" || extension == ".jsonl" || extension == ".ndjson";
}

bool has_json_records(const std::filesystem::path& path) {
  if (path.extension() != ".json") return is_json_file(path);
  const std::string content = read_utf8_file(path);
  if (is_array(content)) return true;
  const std::string_view rest = without_blanks_before(content), first = rest.substr(0, rest.find('\n'));
  require_shallow_json(first, path.string());
  const Json value = value_of(first);
  return value.is_object() && !value.contains("data");
}

void for_each_record(const std::filesystem::path& path, const Take& take) {
  const std::string content = read_utf8_file(path);
  if (!is_json_file(path)) return rows(path, content, take);
  path.extension() == ".json" && is_array(content) ? elements(path, content, take) : lines(path, content, take);
}

FirstRecord first_record(const std::filesystem::path& path) {
  FirstRecord first;
  for_each_record(path, [&](const Json& record, const RecordPlace& place) {
    first = {record, place};
    return false;
  });
  return first;
}

std::string shown_fields(const Json& object) {
  std::vector<std::string> names;
  for (const auto& [name, value] : object.items()) names.push_back(name);
  return names.empty() ? std::string("no field") : in_quotes(names);
}

}  // namespace frostpipe
