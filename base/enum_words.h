#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace frostpipe {

/// A value of an enumeration and the word that stands for it in files and options. A table with further columns defines
/// a row type of its own with the same two members.
template <class Enum>
struct EnumWord {
  Enum value;
  std::string_view word;
};

/// A row for each value of an enumeration.
template <class Enum, std::size_t N>
using EnumWords = std::array<EnumWord<Enum>, N>;

template <class Row, std::size_t N>
const Row& row_of(const std::array<Row, N>& rows, decltype(Row::value) value) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.value == value; });
  FROSTPIPE_CHECK(found != rows.end(), "all values of an enumeration have a row");
  return *found;
}

template <class Row, std::size_t N>
std::string_view word_of(const std::array<Row, N>& rows, decltype(Row::value) value) {
  return row_of(rows, value).word;
}

/// Returns none if no row has this word.
template <class Row, std::size_t N>
std::optional<decltype(Row::value)> value_of(const std::array<Row, N>& rows, std::string_view word) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.word == word; });
  return found == rows.end() ? std::nullopt : std::optional(found->value);
}

/// Throws InvalidInput ("PLACE: RULE, is "WORD"") if no row has this word.
template <class Row, std::size_t N>
decltype(Row::value) parse_word(const std::array<Row, N>& rows, std::string_view word, const std::string& place,
                                const std::string& rule) {
  if (const auto value = value_of(rows, word)) return *value;
  throw InvalidInput(place, rule, "\"" + std::string(word) + "\"");
}

}  // namespace frostpipe
