#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace frostpipe {

/// The range of a token in the original text, in code points, [begin, end). Each invalid UTF-8 sequence counts as the
/// one U+FFFD by which Python replaces it.
struct TokenSpan {
  std::int32_t begin = 0;
  std::int32_t end = 0;

  bool operator==(const TokenSpan&) const = default;
};

/// Which ranges of tokens are wanted.
enum class Spans {
  kNone,
  kTrimmed,  // as the library's offsets: without spaces at their ends if the post-processor trims them
  kWhole,    // with all characters that became the token
};

/// Tokens and their ranges: spans[i] belongs to ids[i]. Begins and ends are non-decreasing.
struct SpannedTokens {
  std::vector<std::int32_t> ids;
  std::vector<TokenSpan> spans;

  bool operator==(const SpannedTokens&) const = default;
};

/// Returns the byte at which each code point begins, followed by the size of the text.
std::vector<std::size_t> code_point_starts(std::string_view utf8);

}  // namespace frostpipe
