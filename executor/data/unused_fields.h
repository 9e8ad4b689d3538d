#pragma once
// Implementation header: include it from .cpp files only.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace frostpipe {

/// Returns whether a text is neither blank nor a number.
bool holds_words(std::string_view text);

/// Collects the fields of a file's records that nothing reads although they hold words, a list of objects, or a label.
class UnusedFields {
 public:
  /// `used` are the names of the fields that are read.
  void add(const nlohmann::json& record, const std::vector<std::string>& used);
  void add(const std::string& name) { names_.insert(name); }

  /// Returns a note for the user that names them, or nothing if there are none.
  std::vector<std::string> note(const std::filesystem::path& path) const;

 private:
  std::set<std::string> names_;
};

}  // namespace frostpipe
