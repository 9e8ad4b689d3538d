#include "executor/data/tokenizers/added_tokens.h"

#include <algorithm>
#include <cstddef>

#include "executor/data/tokenizers/text/characters.h"

namespace frostpipe {
namespace {

/// Returns the position at which the character that ends at `end` begins.
std::size_t begin_of_last(std::string_view text, std::size_t end) {
  do --end;
  while ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80);
  return end;
}

char32_t character_at(std::string_view text, std::size_t position) { return next_character(text, position); }

bool is_in_word(std::string_view text, Range range) {
  const bool goes_on_before =
      range.begin > 0 && is_word_character(character_at(text, begin_of_last(text, range.begin)));
  return goes_on_before || (range.end < text.size() && is_word_character(character_at(text, range.end)));
}

/// Extends the range by the spaces that the token's lstrip and rstrip include, but not to before `earliest`.
Range with_spaces(std::string_view text, Range range, const AddedToken& token, std::size_t earliest) {
  while (token.lstrip && range.begin > earliest) {
    const std::size_t before = begin_of_last(text, range.begin);
    if (!is_whitespace(character_at(text, before))) break;
    range.begin = before;
  }
  while (token.rstrip && range.end < text.size()) {
    std::size_t next = range.end;
    if (!is_whitespace(next_character(text, next))) break;
    range.end = next;
  }
  return range;
}

}  // namespace

AddedTokens::AddedTokens(const std::vector<AddedToken>& tokens) {
  for (const AddedToken& token : tokens)
    if (!token.content.empty()) by_first_byte_[static_cast<std::uint8_t>(token.content.front())].push_back(token);
  for (std::vector<AddedToken>& alike : by_first_byte_)
    std::stable_sort(alike.begin(), alike.end(),
                     [](const AddedToken& a, const AddedToken& b) { return a.content.size() > b.content.size(); });
}

std::vector<TextPiece> AddedTokens::split(std::string_view text) const {
  std::vector<TextPiece> pieces;
  std::size_t begin = 0;  // begin of the text that has not been appended
  for (std::size_t i = 0; i < text.size();) {
    const std::vector<AddedToken>& alike = by_first_byte_[static_cast<std::uint8_t>(text[i])];
    const auto token = std::find_if(alike.begin(), alike.end(),
                                    [&](const AddedToken& one) { return text.substr(i).starts_with(one.content); });
    if (token == alike.end()) {
      ++i;
      continue;
    }
    const Range spelled{i, i + token->content.size()};
    i = spelled.end;
    if (token->single_word && is_in_word(text, spelled)) continue;
    const Range range = with_spaces(text, spelled, *token, begin);
    if (range.begin > begin) pieces.push_back({{begin, range.begin}, std::nullopt});
    pieces.push_back({range, token->id});
    begin = i = range.end;
  }
  if (begin < text.size()) pieces.push_back({{begin, text.size()}, std::nullopt});
  return pieces;
}

}  // namespace frostpipe
