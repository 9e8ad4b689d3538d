#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace frostpipe {

/// Where a token stands in the text that it was cut from: code points of the text as given, [begin, end). Each broken
/// sequence of UTF-8 counts as the one U+FFFD that Python reads for it.
struct TokenSpan {
  std::int32_t begin = 0;
  std::int32_t end = 0;

  bool operator==(const TokenSpan&) const = default;
};

/// Tokens and where they stand: spans[i] is that of ids[i]. Neither begins nor ends ever descend.
struct SpannedTokens {
  std::vector<std::int32_t> ids;
  std::vector<TokenSpan> spans;

  bool operator==(const SpannedTokens&) const = default;
};

/// The byte at which each code point begins, and the text's size after them.
std::vector<std::size_t> code_point_starts(std::string_view utf8);

}  // namespace frostpipe
