#pragma once
// Implementation header: JSON of other tools, whose keys are data. Include it from .cpp files only.
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frostpipe::foreign {

/// A value and its place in a file. Every failing access throws InvalidInput "FILE.key[3]: must be a number, is ...".
class Value {
 public:
  Value(const nlohmann::json& json, std::string place) : json_(&json), place_(std::move(place)) {}
  Value operator[](std::string_view key) const;
  Value operator[](int index) const;
  bool has(std::string_view key) const { return json_->is_object() && json_->contains(std::string(key)); }
  /// Returns the members of an object, sorted by their keys as text.
  std::vector<std::pair<std::string, Value>> members() const;
  std::vector<Value> elements() const;
  double number() const;
  int integer() const;
  std::string text() const;
  bool is_number() const { return json_->is_number(); }
  const std::string& place() const { return place_; }

 private:
  [[noreturn]] void fail(std::string_view rule) const;
  const nlohmann::json* json_;
  std::string place_;
};

/// A parsed file; a byte-order mark is skipped. It must outlive its values.
class File {
 public:
  explicit File(const std::filesystem::path& path);
  File(std::string_view json, std::string_view source);
  Value root() const { return {*json_, place_}; }

 private:
  std::unique_ptr<nlohmann::json> json_;
  std::string place_;
};

/// Parses the key of `value`, an integer from `least` to 2^24. Throws InvalidInput, which names the value's place, for
/// any other key.
int number_in(std::string_view key, const Value& value, int least = 0);

}  // namespace frostpipe::foreign
