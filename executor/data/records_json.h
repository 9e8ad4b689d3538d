#pragma once
// Implementation header: include it from .cpp files only.
#include <cstddef>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace frostpipe {

/// The location of a record: a line of its file, or an element of its array.
struct RecordPlace {
  std::size_t number = 0;  // lines are counted from 1, elements from 0
  bool is_line = true;
  /// Returns a text such as "data.jsonl:7" or "data.json: [6]".
  std::string in(const std::filesystem::path& path) const;
};

/// True if the file's name says that it holds JSON (.json, .jsonl, .ndjson).
bool is_json_file(const std::filesystem::path& path);

/// True for .jsonl and .ndjson, and for a .json file that holds an array or JSON Lines. Another .json file is one
/// object, as in SQuAD. Throws InvalidInput for a .json file that cannot be read or nests too deeply.
bool has_json_records(const std::filesystem::path& path);

/// Calls `take` for each record of a file, in order, until it returns false. The file is JSON Lines (an object per
/// line; empty lines are skipped), an array of objects (.json), or a table (read_table), whose fields are strings named
/// by its header. Throws InvalidInput that names file, line or element, rule and value, also if there is no record.
void for_each_record(const std::filesystem::path& path,
                     const std::function<bool(const nlohmann::json& record, const RecordPlace& place)>& take);

struct FirstRecord {
  nlohmann::json record;
  RecordPlace place;
};
FirstRecord first_record(const std::filesystem::path& path);

/// Returns the names of an object's fields for messages: `"a", "b" and 3 more`, or `no field`.
std::string shown_fields(const nlohmann::json& object);

}  // namespace frostpipe
