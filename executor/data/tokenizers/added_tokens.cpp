#include "executor/data/tokenizers/added_tokens.h"

#include <algorithm>
#include <cstddef>

namespace frostpipe {

AddedTokens::AddedTokens(const std::vector<AddedToken>& tokens) {
  for (const AddedToken& token : tokens) {
    ByFirstByte& all = token.normalized ? normalized_ : as_written_;
    all[static_cast<std::uint8_t>(token.content.front())].push_back(token);
  }
  for (ByFirstByte* all : {&as_written_, &normalized_})
    for (std::vector<AddedToken>& alike : *all)
      std::stable_sort(alike.begin(), alike.end(),
                       [](const AddedToken& a, const AddedToken& b) { return a.content.size() > b.content.size(); });
}

std::vector<TextPiece> AddedTokens::split(std::string_view text) const {
  std::vector<TextPiece> first_pass;
  append_split(text, as_written_, first_pass);
  std::vector<TextPiece> pieces;
  for (const TextPiece& piece : first_pass) {
    if (piece.id)
      pieces.push_back(piece);
    else
      append_split(piece.text, normalized_, pieces);
  }
  return pieces;
}

void AddedTokens::append_split(std::string_view text, const ByFirstByte& tokens, std::vector<TextPiece>& pieces) {
  std::size_t begin = 0;  // of what has not been appended
  for (std::size_t i = 0; i < text.size();) {
    const std::vector<AddedToken>& alike = tokens[static_cast<std::uint8_t>(text[i])];
    const auto found = std::find_if(alike.begin(), alike.end(),
                                    [&](const AddedToken& token) { return text.substr(i).starts_with(token.content); });
    if (found == alike.end()) {
      ++i;
      continue;
    }
    if (i > begin) pieces.push_back({text.substr(begin, i - begin), std::nullopt});
    pieces.push_back({text.substr(i, found->content.size()), found->id});
    begin = i += found->content.size();
  }
  if (begin < text.size()) pieces.push_back({text.substr(begin), std::nullopt});
}

}  // namespace frostpipe
