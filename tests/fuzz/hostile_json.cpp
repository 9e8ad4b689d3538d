#include "tests/fuzz/hostile_json.h"

#include <algorithm>
#include <iterator>
#include <optional>

namespace frostpipe::test {
namespace {

using Json = nlohmann::ordered_json;

std::string repeated(std::string_view text, std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

/// Values as text in the file; not all of them are JSON.
const std::vector<std::string>& hostile_texts() {
  static const std::vector<std::string> texts = [] {
    std::vector<std::string> all = {
        // Numbers: small, at the limits of the readers and of the types, and beyond them.
        "0", "1", "-1", "2", "3", "64", "0.5", "-0.5", "-0", "-0.0", "1e-300", "5e-324", "1e15", "1e18", "1e308",
        "-1e308", "1e400", "-1e999", "32768", "1048576", "16777216", "1000000000000000", "2147483647", "2147483648",
        "-2147483648", "17592186044416", "1125899906842624", "9007199254740993", "4611686018427387904",
        "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
        "18446744073709551615", "18446744073709551616", std::string(400, '1'), std::string(20'000, '1'),
        // Words.
        "null", "true", "false", "\"\"", "\"x\"", "\"1\"", "\"NaN\"", "\"Infinity\"", "\"-Infinity\"",
        "\"../../../etc/passwd\"", "\"a\\u0000b\"", "\"\\u202e\\ud83d\\ude00\"", "\"%s%n{}\"",
        '"' + std::string(100'000, 'x') + '"',
        // Lists and objects.
        "[]", "{}", "[[]]", "[{}]", "[null]", "[0]", "[-1]", "[1,2]", "[\"x\"]", "[1.5]", "[[1,2],[3]]", "{\"\":0}",
        "{\"x\":{}}", "{\"a\":1,\"a\":2}", "[0" + repeated(",1", 50'000) + "]", "[{}" + repeated(",{}", 2'000) + "]",
        "[[]" + repeated(",[]", 2'000) + "]", repeated("[", 90) + repeated("]", 90),
        repeated("[", 200) + repeated("]", 200), std::string(100'000, '['),
        repeated("{\"a\":", 80) + "1" + repeated("}", 80),
        // Text that is not JSON.
        "NaN", "Infinity", "01", "0x10", "1.", "+1", "'x'", "\"\\ud800\"", "\"\\u12\"", "\"\t\"", "\"\xff\xfe\"",
        "\"\xed\xa0\x80\"", "", "tru", "[1,]", "{,}", "/* 1 */ 1", std::string(1, '\0')};
    std::string many_keys = "{\"key\":0";
    for (int i = 0; i < 2'000; ++i) many_keys += ",\"key" + std::to_string(i) + "\":0";
    all.push_back(many_keys + "}");
    return all;
  }();
  return texts;
}

/// Keys that a field gets: a neighbour's, and others if keys are data.
constexpr const char* kNames[] = {"x", "", "0", "-1", "7", "2000000000", "99999999999999999999", "\xe2\x80\xae"};

/// Other changes of a field, besides the texts and names above.
enum Way : std::size_t { removed, in_a_list, many_times, doubled, scaled_up, scaled_down, num_ways };

std::size_t num_changes() { return hostile_texts().size() + std::size(kNames) + num_ways; }

/// A placeholder for a text that is inserted when the rest of the document is written.
std::string stand_in(std::size_t text) { return '\x01' + std::to_string(text) + '\x01'; }
/// The suffix of a key that is duplicated; it is removed when the document is written.
constexpr char kAgain = '\x02';

/// No document, if it becomes so long that a limit on allocations could not tell it from a reader's own memory.
std::optional<std::string> with_texts(std::string_view document) {
  static constexpr std::string_view kMark = "\\u0001", kAgainMark = "\\u0002\":";
  static constexpr std::size_t kLongest = 2 << 20;
  std::string text;
  while (text.size() <= kLongest) {
    const std::size_t begin = document.find('"' + std::string(kMark));
    text += document.substr(0, begin);
    if (begin == std::string_view::npos) break;
    document.remove_prefix(begin + 1 + kMark.size());
    const std::size_t end = document.find(kMark);
    text += hostile_texts()[std::stoul(std::string(document.substr(0, end)))];
    document.remove_prefix(end + kMark.size() + 1);
  }
  if (text.size() > kLongest) return std::nullopt;
  for (std::size_t at = text.find(kAgainMark); at != std::string::npos; at = text.find(kAgainMark, at))
    text.erase(at, kAgainMark.size() - 2);
  return text;
}

Json scaled(const Json& value, double factor) {
  if (value.is_number_integer())
    return static_cast<std::int64_t>(static_cast<double>(value.get<std::int64_t>()) * factor);
  return value.is_number() ? Json(value.get<double>() * factor) : value;
}

}  // namespace

HostileJson::HostileJson(std::string_view valid, std::uint64_t seed) : valid_(Json::parse(valid)), random_(seed) {
  collect(valid_, Pointer(), "");
  for (std::size_t kind = 0; kind < kinds_.size(); ++kind)
    for (std::size_t way = 0; way < num_changes(); ++way) single_.push_back({kind, way});
  std::shuffle(single_.begin(), single_.end(), random_);
}

void HostileJson::collect(const Json& json, const Pointer& place, const std::string& kind) {
  auto known = std::find_if(kinds_.begin(), kinds_.end(), [&](const auto& one) { return one.first == kind; });
  if (known == kinds_.end()) known = kinds_.insert(kinds_.end(), {kind, {}});
  known->second.push_back(place);
  if (!json.is_structured()) return;
  std::size_t index = 0;
  for (const auto& [key, value] : json.items())
    json.is_array() ? collect(value, place / index++, kind + "/*") : collect(value, place / key, kind + "/" + key);
}

void HostileJson::change_at(Json& document, const Pointer& place, std::size_t way) const {
  if (!document.contains(place)) return;  // an earlier change has removed it
  Json& value = document[place];
  if (way < hostile_texts().size()) {
    value = stand_in(way);
    return;
  }
  const Json old = value;
  Json* const parent = place.empty() ? nullptr : &document[place.parent_pointer()];
  if (const std::size_t name = way - hostile_texts().size(); name < std::size(kNames)) {
    if (parent == nullptr || !parent->is_object()) return;
    parent->erase(place.back());
    (*parent)[kNames[name]] = old;
    return;
  }
  switch (static_cast<Way>(way - hostile_texts().size() - std::size(kNames))) {
    case removed:
      if (parent == nullptr)
        value = Json();
      else if (parent->is_array())
        parent->erase(std::stoul(place.back()));
      else
        parent->erase(place.back());
      return;
    case in_a_list:
      value = Json::array({old});
      return;
    case many_times:  // in a list, as more elements of it
      if (parent == nullptr || !parent->is_array())
        value = Json(20, old);
      else
        for (int i = 0; i < 20; ++i) parent->push_back(old);
      return;
    case doubled:  // the same key again
      if (parent != nullptr && parent->is_object()) (*parent)[place.back() + kAgain] = Json::array({old});
      return;
    case scaled_up:
      value = scaled(old, 1000);
      return;
    case scaled_down:
    case num_ways:
      value = scaled(old, 0.001);
  }
}

std::string HostileJson::next() {
  for (;;) {
    Json document = valid_;
    if (next_ < single_.size()) {
      change_one(document, single_[next_++]);
    } else {
      for (std::size_t changes = 2 + below(3); changes > 0; --changes) {
        const Change& change = single_[below(single_.size())];
        below(2) == 0 ? change_one(document, change) : change_all(document, change);
      }
    }
    if (const std::optional<std::string> text = with_texts(document.dump())) return *text;
  }
}

void HostileJson::change_one(Json& document, const Change& change) {
  const std::vector<Pointer>& places = kinds_[change.kind].second;
  change_at(document, places[below(places.size())], change.way);
}

void HostileJson::change_all(Json& document, const Change& change) const {
  for (const Pointer& place : kinds_[change.kind].second) change_at(document, place, change.way);
}

}  // namespace frostpipe::test
