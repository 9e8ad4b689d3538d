#pragma once
// Implementation header: include it from .cpp files only.
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frostpipe {

/// An object of a tokenizer's files. Its fields are taken one by one, and finish() refuses by name what nobody took.
class PipelinePart {
 public:
  using Json = nlohmann::json;

  /// Throws InvalidInput where `json`, which outlives this, is no object.
  /// A field of it stands at `place`, `separator`, its name.
  PipelinePart(const Json& json, std::string place, std::string_view separator = ".");

  const std::string& place() const { return place_; }
  std::string place_of(std::string_view key) const { return place_ + separator_ + std::string(key); }

  /// Null where the field is missing.
  const Json& take(const std::string& key);
  /// These throw InvalidInput where the field is of another type, or missing (or null) and there is no other value.
  bool flag(const std::string& key);
  bool flag(const std::string& key, bool otherwise);
  std::string text(const std::string& key);
  std::string text(const std::string& key, std::string_view otherwise);
  /// Of 2^20 at most.
  int count(const std::string& key, int otherwise);
  PipelinePart part(const std::string& key);
  std::vector<PipelinePart> parts(const std::string& key);
  /// Throws InvalidInput unless the field is missing, null, or one of `allowed`.
  void require(const std::string& key, const std::vector<Json>& allowed, std::string_view why);

  void finish() const;

 private:
  const Json* json_;
  std::string place_, separator_;
  std::set<std::string> taken_;
};

/// How one kind of a part is read.
template <typename Made>
struct Kind {
  std::string_view name;
  Made (*read)(PipelinePart&);
};

[[noreturn]] void refuse_kind(const PipelinePart& part, const std::string& name,
                              const std::vector<std::string_view>& known);

/// What the kind that `type` names makes of the part, all of whose fields it must know.
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
