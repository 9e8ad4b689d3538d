#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "profiles/error.h"

namespace frostpipe {

/// A value of an enumeration and the word that stands for it in files and options.
template <class Enum>
struct EnumWord {
  Enum value;
  std::string_view word;
};

/// All values of an enumeration.
template <class Enum, std::size_t N>
using EnumWords = std::array<EnumWord<Enum>, N>;

template <class Enum, std::size_t N>
std::string_view word_of(const EnumWords<Enum, N>& words, Enum value) {
  const auto found = std::find_if(words.begin(), words.end(), [&](const auto& one) { return one.value == value; });
  FROSTPIPE_CHECK(found != words.end(), "all values of an enumeration have a word");
  return found->word;
}

/// None if the word stands for nothing.
template <class Enum, std::size_t N>
std::optional<Enum> value_of(const EnumWords<Enum, N>& words, std::string_view word) {
  const auto found = std::find_if(words.begin(), words.end(), [&](const auto& one) { return one.word == word; });
  return found == words.end() ? std::nullopt : std::optional(found->value);
}

/// Throws InvalidInput ("PLACE: RULE, is "WORD"") if the word stands for nothing.
template <class Enum, std::size_t N>
Enum parse_word(const EnumWords<Enum, N>& words, std::string_view word, const std::string& place,
                const std::string& rule) {
  if (const auto value = value_of(words, word)) return *value;
  throw InvalidInput(place, rule, "\"" + std::string(word) + "\"");
}

}  // namespace frostpipe
