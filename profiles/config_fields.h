#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "profiles/computed_fields.h"

namespace frostpipe {

/// A config.json under reading. What is missing or null has its default; all throw InvalidInput that names file, field,
/// rule and value.
class ConfigFields {
 public:
  /// Of the text of `file`, which must outlive this object. Fields that ask for another computation than is done here
  /// are refused, see require_computed_fields.
  ConfigFields(const std::string& text, const std::string& file, ConfigUse use = ConfigUse::computing);
  const nlohmann::ordered_json& json() const { return json_; }

  /// A whole number that must be given.
  std::int64_t positive(const char* key) const;
  std::int64_t positive(const char* key, std::int64_t otherwise) const;
  /// A whole number >= 0, such as a token's id.
  std::int64_t whole(const char* key, std::int64_t otherwise) const;
  std::vector<int> positives(const char* key, const std::vector<int>& otherwise) const;
  double number(const char* key, double otherwise) const;
  bool flag(const char* key, bool otherwise) const;
  /// "" where it is none.
  std::string text(const char* key) const;
  /// For messages.
  std::string place(const char* key) const { return file_ + ": " + key; }

 private:
  const nlohmann::ordered_json& given(const char* key) const;

  const std::string& file_;
  nlohmann::ordered_json json_;
};

}  // namespace frostpipe
