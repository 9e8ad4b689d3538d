#pragma once
// Implementation header: include it from .cpp files only. One function `fields(archive, value)` per struct names its
// JSON keys once; the same function reads (Reader) and writes (Writer), so the two directions cannot drift apart.
#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/error.h"

namespace frostpipe::json {

using Json = nlohmann::ordered_json;

/// The position of a value in a file, and the version of that file. Places are built on the stack while reading. They
/// become text only in an error, and to parse an enumeration.
class Place {
 public:
  explicit Place(std::string_view source, int version = std::numeric_limits<int>::max())
      : source_(source), version_(version) {}
  Place(const Place& parent, std::string_view key) : parent_(&parent), key_(key) {}
  Place(const Place& parent, std::size_t index) : parent_(&parent), index_(index) {}
  /// Returns "plan.json: phases[1].partition[0].end".
  std::string text() const;
  int version() const { return parent_ ? parent_->version() : version_; }

 private:
  std::string path() const;
  std::string_view source() const { return parent_ ? parent_->source() : source_; }

  const Place* parent_ = nullptr;
  std::string_view source_, key_;
  std::optional<std::size_t> index_;
  int version_ = 0;  // of the file; set at the root only
};

/// The smallest and the largest number that a field allows; for an array or a map they hold for every element. A double
/// without a maximum may be infinite. Fields of type std::uint64_t ignore their bounds.
struct Bounds {
  std::int64_t minimum = std::numeric_limits<std::int64_t>::min();
  std::int64_t maximum = std::numeric_limits<std::int64_t>::max();
};
constexpr Bounds at_least(std::int64_t minimum) { return {.minimum = minimum}; }
constexpr Bounds between(std::int64_t minimum, std::int64_t maximum) { return {minimum, maximum}; }
/// These bounds are larger than any real value, yet small enough that sums and products over layers, ranks and
/// micro-batches fit into 64 bits.
constexpr Bounds kDuration = between(0, 1'000'000'000'000'000);  // 11 days in nanoseconds
constexpr Bounds kSize = between(0, std::int64_t{1} << 50);      // 1 PiB in bytes
constexpr std::int64_t kMaxParameters = std::int64_t{1} << 44;   // per layer
constexpr std::int64_t kMaxTokens = 1 << 24, kMaxSamples = 1 << 24, kMaxRanks = 1 << 20, kMaxMicroBatches = 1 << 20;

/// Throws InvalidInput "PLACE: RULE, is VALUE", in which a long value is cut.
[[noreturn]] void fail(const Place& place, std::string_view rule, const Json& value);
/// Throws InvalidInput that names the first unknown field, or if there is none the missing one. A misspelt field is
/// both; naming the unknown spelling helps more.
[[noreturn]] void fail_fields(const Place& place, const Json& object, const std::vector<const char*>& known,
                              const char* missing);

std::int64_t read_integer(const Json& json, const Place& place, std::int64_t minimum, std::int64_t maximum);
std::uint64_t read_unsigned(const Json& json, const Place& place);
double read_number(const Json& json, const Place& place, Bounds bounds);
const std::string& read_string(const Json& json, const Place& place);
/// Writes NaN and infinities, which JSON lacks, as strings.
Json write_number(double value);

/// A file's content without its envelope.
struct Content {
  int version = 1;
  Json json;
};
/// Parses the text, and checks and removes its envelope {"format": ..., "version": ...}. Throws InvalidInput for
/// invalid JSON, too many values (require_few_json_values), another format, and a version that is not 1 to `newest`.
Content open_envelope(std::string_view text, std::string_view source, std::string_view format, int newest);
/// Returns deterministic text: a value that fits on one line is written on one line, and long arrays of scalars fill
/// their lines.
std::string pretty_text(const Json& json);

template <class T>
void read(const Json& json, const Place& place, T& value, Bounds bounds = {});
template <class T>
Json write(const T& value);

/// A field that may be missing or null: the member then keeps the value that it has. A member that equals T{} is not
/// written.
struct MayBeMissing {
  Bounds bounds{};
};

/// A field that may be missing or null and is then `value`. This value is not written.
template <class T>
struct Otherwise {
  T value;
  Bounds bounds{};
};

/// A field that had another name in files up to `last_version`. It is written with its new name.
struct Formerly {
  const char* name;
  int last_version;
  Bounds bounds{};
};

/// A field that accepts only some values of its enumeration; `rule` lists them in the error.
template <class Enum, std::size_t N>
struct Only {
  std::array<Enum, N> values;
  std::string_view rule;
};

/// Reads the fields of one object. A field must be present unless it is an optional, MayBeMissing or Otherwise, and
/// unknown fields are refused.
class Reader {
 public:
  template <class T>
  using Value = T;

  Reader(const Json& object, const Place& place) : object_(object), place_(place) {
    if (!object.is_object()) fail(place, "must be an object", object);
  }

  template <class T>
  void operator()(const char* name, T& member, Bounds bounds = {}) {
    known_.push_back(name);
    const auto found = object_.find(name);
    if (found == object_.end()) {
      if (missing_ == nullptr && !is_optional(member)) missing_ = name;
      return;
    }
    ++num_found_;
    read(*found, Place(place_, std::string_view(name)), member, bounds);
  }

  template <class T>
  void operator()(const char* name, T& member, MayBeMissing field) {
    known_.push_back(name);
    const auto found = object_.find(name);
    if (found == object_.end()) return;
    ++num_found_;
    if (!found->is_null()) read(*found, Place(place_, std::string_view(name)), member, field.bounds);
  }

  template <class T>
  void operator()(const char* name, T& member, Otherwise<T> field) {
    member = field.value;
    (*this)(name, member, MayBeMissing{field.bounds});
  }

  template <class T>
  void operator()(const char* name, T& member, Formerly before) {
    (*this)(place_.version() <= before.last_version ? before.name : name, member, before.bounds);
  }

  template <class T, class Enum, std::size_t N>
  void operator()(const char* name, T& member, const Only<Enum, N>& only) {
    if (const auto found = object_.find(name); found != object_.end() && found->is_string()) {
      const auto& word = found->template get_ref<const std::string&>();
      if (std::none_of(only.values.begin(), only.values.end(), [&](Enum value) { return to_string(value) == word; }))
        throw InvalidInput(Place(place_, std::string_view(name)).text(), only.rule, "\"" + word + "\"");
    }
    (*this)(name, member);
  }

  void finish() const {
    if (missing_ != nullptr || num_found_ != object_.size()) fail_fields(place_, object_, known_, missing_);
  }

 private:
  template <class T>
  static constexpr bool is_optional(const std::optional<T>&) {
    return true;
  }
  template <class T>
  static constexpr bool is_optional(const T&) {
    return false;
  }

  const Json& object_;
  const Place& place_;
  std::vector<const char*> known_;
  std::size_t num_found_ = 0;
  const char* missing_ = nullptr;
};

class Writer {
 public:
  template <class T>
  using Value = const T;

  template <class T>
  void operator()(const char* name, const T& member, Bounds = {}) {
    object[name] = write(member);
  }
  template <class T>
  void operator()(const char* name, const std::optional<T>& member, Bounds = {}) {
    if (member) object[name] = write(*member);
  }

  template <class T>
  void operator()(const char* name, const T& member, MayBeMissing) {
    if (!(member == T{})) object[name] = write(member);
  }

  template <class T>
  void operator()(const char* name, const T& member, Otherwise<T> field) {
    if (!(member == field.value)) object[name] = write(member);
  }

  template <class T>
  void operator()(const char* name, const T& member, Formerly) {
    object[name] = write(member);
  }

  template <class T, class Enum, std::size_t N>
  void operator()(const char* name, const T& member, const Only<Enum, N>&) {
    (*this)(name, member);
  }

  Json object = Json::object();
};

/// The type of `value` in `fields(archive, value)`, which is const for a Writer.
template <class Archive, class T>
using Value = typename Archive::template Value<T>;

/// Enumerations and actions are written as text: to_string(value) and parse_text(text, place, value).
template <class T>
concept WrittenAsText = requires(T& value) {
  parse_text(std::string_view(), std::string(), value);
};

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsMap : std::false_type {};
template <class T>
struct IsMap<std::map<std::string, T>> : std::true_type {};

template <class T>
void read(const Json& json, const Place& place, T& value, Bounds bounds) {
  if constexpr (std::same_as<T, bool>) {
    if (!json.is_boolean()) fail(place, "must be true or false", json);
    value = json.get<bool>();
  } else if constexpr (std::same_as<T, std::uint64_t>) {
    value = read_unsigned(json, place);
  } else if constexpr (std::integral<T>) {
    using Limits = std::numeric_limits<T>;
    value = static_cast<T>(read_integer(json, place, std::max<std::int64_t>(bounds.minimum, Limits::min()),
                                        std::min<std::int64_t>(bounds.maximum, Limits::max())));
  } else if constexpr (std::same_as<T, double>) {
    value = read_number(json, place, bounds);
  } else if constexpr (std::same_as<T, std::string>) {
    value = read_string(json, place);
  } else if constexpr (WrittenAsText<T>) {
    parse_text(read_string(json, place), place.text(), value);
  } else if constexpr (IsOptional<T>::value) {
    value.reset();
    if (!json.is_null()) read(json, place, value.emplace(), bounds);
  } else if constexpr (IsVector<T>::value) {
    if (!json.is_array()) fail(place, "must be an array", json);
    value.clear();
    value.reserve(json.size());
    for (std::size_t i = 0; i < json.size(); ++i) read(json[i], Place(place, i), value.emplace_back(), bounds);
  } else if constexpr (IsMap<T>::value) {
    if (!json.is_object()) fail(place, "must be an object", json);
    for (const auto& [key, element] : json.items())
      read(element, Place(place, std::string_view(key)), value[key], bounds);
  } else {
    Reader reader(json, place);
    fields(reader, value);
    reader.finish();
    if constexpr (requires { check(place, value); }) check(place, value);
  }
}

template <class T>
Json write(const T& value) {
  if constexpr (std::same_as<T, double>) {
    return write_number(value);
  } else if constexpr (std::integral<T> || std::same_as<T, std::string>) {
    return value;
  } else if constexpr (WrittenAsText<T>) {
    return std::string(to_string(value));
  } else if constexpr (IsVector<T>::value) {
    Json array = Json::array();
    for (const auto& element : value) array.push_back(write(element));
    return array;
  } else if constexpr (IsMap<T>::value) {
    Json object = Json::object();
    for (const auto& [key, element] : value) object[key] = write(element);
    return object;
  } else {
    Writer writer;
    fields(writer, value);
    return std::move(writer.object);
  }
}

template <class T>
std::string write_envelope(std::string_view format, const T& value, int version = 1) {
  Writer writer;
  writer.object["format"] = format;
  writer.object["version"] = version;
  fields(writer, value);
  return pretty_text(writer.object);
}

template <class T>
T read_envelope(std::string_view text, std::string_view source, std::string_view format, int newest = 1) {
  const auto [version, json] = open_envelope(text, source, format, newest);
  T value;
  read(json, Place(source, version), value);
  return value;
}

}  // namespace frostpipe::json
