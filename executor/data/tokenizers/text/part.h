#pragma once
// Implementation header: include it from .cpp files only.
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace frostpipe {

/// An object of a tokenizer's files. Its fields are read one by one, and finish() rejects fields that were not read.
class PipelinePart {
 public:
  using Json = nlohmann::json;

  /// Throws InvalidInput unless `json` is an object; it must outlive this. The place of a field is `place`, `separator`
  /// and its name.
  PipelinePart(const Json& json, std::string place, std::string_view separator = ".");

  const std::string& place() const { return place_; }
  std::string place_of(std::string_view key) const { return place_ + separator_ + std::string(key); }

  /// Returns the field, or null if it is missing, and marks it as read.
  const Json& take(const std::string& key);
  /// These throw InvalidInput if the field has another type, or is missing or null and there is no default
  /// (`otherwise`).
  bool flag(const std::string& key);
  bool flag(const std::string& key, bool otherwise);
  std::string text(const std::string& key);
  std::string text(const std::string& key, std::string_view otherwise);
  /// Returns a whole number from 0 to 2^20.
  int count(const std::string& key, int otherwise);
  /// These return an object, and a list of objects.
  PipelinePart part(const std::string& key);
  std::vector<PipelinePart> parts(const std::string& key);
  /// Throws InvalidInput with the rule `why` unless the field is missing, null, or one of `allowed`.
  void require(const std::string& key, const std::vector<Json>& allowed, std::string_view why);

  /// Throws InvalidInput that names a field which was not read, if there is one.
  void finish() const;

 private:
  const Json* json_;
  std::string place_, separator_;
  std::set<std::string> taken_;
};

/// A `type` of part, and the function that reads such a part.
template <typename Made>
struct Kind {
  std::string_view name;
  Made (*read)(PipelinePart&);
};

/// Throws InvalidInput that says that the type `name` is none of the `known` ones.
[[noreturn]] void refuse_kind(const PipelinePart& part, const std::string& name,
                              const std::vector<std::string_view>& known);

/// Reads the part by the function for its `type`. Throws InvalidInput for a type that is not in `kinds`, and for fields
/// that the function does not read.
template <typename Made>
Made read_kind(PipelinePart part, std::span<const Kind<Made>> kinds) {
  const std::string name = part.text("type");
  std::vector<std::string_view> known;
  for (const Kind<Made>& kind : kinds) {
    if (kind.name == name) {
      Made made = kind.read(part);
      part.finish();
      return made;
    }
    known.push_back(kind.name);
  }
  refuse_kind(part, name, known);
}

}  // namespace frostpipe
