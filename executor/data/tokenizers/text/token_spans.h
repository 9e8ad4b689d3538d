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

/// The ranges of tokens that a caller wants.
enum class Spans {
  kNone,
  kTrimmed,  // as offsets of `tokenizers`: without spaces at their ends if the post-processor trims them
  kWhole,    // with all characters that became the token
};

/// Tokens and their ranges: spans[i] belongs to ids[i]. Begins and ends are non-decreasing. With Spans::kNone, `spans`
/// is empty.
struct SpannedTokens {
  std::vector<std::int32_t> ids;
  std::vector<TokenSpan> spans;

  bool operator==(const SpannedTokens&) const = default;
};

/// Returns the byte at which each code point begins, followed by the size of the text. An invalid sequence counts as
/// one code point.
std::vector<std::size_t> code_point_starts(std::string_view utf8);

}  // namespace frostpipe
