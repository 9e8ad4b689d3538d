#pragma once
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "profiles/computed_fields.h"

namespace frostpipe {

/// The largest whole number that a config.json may give.
constexpr std::int64_t kMaxConfigNumber = std::numeric_limits<std::int32_t>::max();

/// Reads the fields of a config.json. A field that is missing or null takes its default. All functions but given()
/// throw InvalidInput that names file, field, rule and value if the value has another type or range.
class ConfigFields {
 public:
  /// Parses `text`, the content of `file`. The name `file` must outlive this object. Throws InvalidInput for fields
  /// with unsupported values, see require_computed_fields.
  ConfigFields(const std::string& text, const std::string& file, ConfigUse use = ConfigUse::computing);
  const nlohmann::ordered_json& json() const { return json_; }
  /// Returns the value of a field; null if it is missing.
  const nlohmann::ordered_json& given(const char* key) const;
  /// Returns whether the file has the field, as null, by which transformers says "none" and not "the default".
  bool is_null(const char* key) const { return given(key).is_null() && json_.contains(key); }
  /// Throws InvalidInput for an unknown field, see require_known_fields. All fields of interest must have been read
  /// before, by the functions of this class.
  void require_known() const { require_known_fields(json_, read_, file_); }

  /// Reads a required integer from 1 to kMaxConfigNumber.
  std::int64_t positive(const char* key) const;
  std::int64_t positive(const char* key, std::int64_t otherwise) const;
  /// Reads an integer from 0 to kMaxConfigNumber, such as a token's id.
  std::int64_t non_negative(const char* key, std::int64_t otherwise) const;
  /// Reads a list, not empty, of integers from 1 to 2^20 - 1.
  std::vector<int> positives(const char* key, const std::vector<int>& otherwise) const;
  /// Reads a number > 0.
  double number(const char* key, double otherwise) const;
  bool flag(const char* key, bool otherwise) const;
  /// Returns an empty object if the field is missing.
  nlohmann::ordered_json object(const char* key) const;
  /// Returns "" if the field is missing.
  std::string text(const char* key) const;
  /// Returns "FILE: KEY" for messages.
  std::string place(const char* key) const { return file_ + ": " + key; }

 private:
  const std::string& file_;
  nlohmann::ordered_json json_;
  mutable FieldNames read_;
};

}  // namespace frostpipe
