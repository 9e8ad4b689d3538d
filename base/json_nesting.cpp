#include "base/json_nesting.h"

#include <array>
#include <cstddef>
#include <string>

#include "base/error.h"

namespace frostpipe {

namespace {

/// Counts the comparisons of each new key with those before it, in all objects together. Objects of few keys are not
/// counted.
class Comparisons {
 public:
  /// Counts one more key in an object that has `before` keys already. Returns false once the bound is exceeded.
  bool add(std::size_t before) {
    constexpr std::size_t kFewKeys = 32, kMaxKeys = 20'000;
    if (before > kFewKeys) count_ += before;
    return count_ <= kMaxKeys * (kMaxKeys - 1) / 2;
  }

 private:
  std::size_t count_ = 0;
};

void require_shallow(std::string_view text, std::string_view source, Comparisons* comparisons) {
  constexpr int kDeepest = 100;
  std::array<std::size_t, kDeepest + 1> num_keys{};  // of the object open at each depth
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;  // the escaped character does not end the string
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepest)
        throw InvalidInput(std::string(source), "must nest its lists and objects at most 100 deep",
                           "deeper at byte " + std::to_string(i));
      num_keys[static_cast<std::size_t>(depth)] = 0;
    } else if (c == ':') {
      std::size_t& before = num_keys[static_cast<std::size_t>(depth)];
      if (comparisons != nullptr && !comparisons->add(before))
        throw InvalidInput(source, "must have at most 20000 keys in one object, or fewer in each of many objects",
                           "more at byte " + std::to_string(i));
      ++before;
    } else if (c == ']' || c == '}') {
      if (depth > 0) --depth;  // the parser reports a bracket too many
    }
  }
}

}  // namespace

void require_shallow_json(std::string_view text, std::string_view source) { require_shallow(text, source, nullptr); }

void require_few_json_values(std::string_view text, std::string_view source) {
  constexpr std::size_t kMaxValues = 5'000'000;
  std::size_t num_values = 1;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == ',' || c == '[' || c == '{') {  // a value follows, except in an empty list or object
      if (++num_values > kMaxValues)
        throw InvalidInput(source, "must hold at most 5000000 values", "more at byte " + std::to_string(i));
    }
  }
}

void require_shallow_json_of_few_keys(std::string_view text, std::string_view source) {
  Comparisons comparisons;
  require_shallow(text, source, &comparisons);
}

}  // namespace frostpipe
