#pragma once
// Implementation header: include it from .cpp files only.
#include <cstddef>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace frostpipe {

/// Where a record stands: in a line of its file, or as an element of its array.
struct RecordPlace {
  std::size_t number = 0;  // of the line from 1, of the element from 0
  bool is_line = true;
  /// "data.jsonl:7", "data.json: [6]"
  std::string in(const std::filesystem::path& path) const;
};

/// Whether the file's name says that it holds JSON (.json, .jsonl, .ndjson).
bool is_json_file(const std::filesystem::path& path);

/// Whether a .json file holds records: an array of objects, or JSON Lines; else it is one object, as SQuAD's.
bool has_json_records(const std::filesystem::path& path);

/// Calls `take` for each record of a file, in their order, until it returns false: JSON Lines (an object per line;
/// empty lines are skipped), an array of objects (.json), or else the rows of a table (read_table), whose fields are
/// texts by the names in its header. Throws InvalidInput that names file, line or element, rule and value; also where
/// there is no record.
void for_each_record(const std::filesystem::path& path,
                     const std::function<bool(const nlohmann::json& record, const RecordPlace& place)>& take);

struct FirstRecord {
  nlohmann::json record;
  RecordPlace place;
};
FirstRecord first_record(const std::filesystem::path& path);

/// Of an object: "a", "b" and 3 more.
std::string shown_fields(const nlohmann::json& object);

}  // namespace frostpipe
