#include "base/spelling.h"

#include <algorithm>
#include <cctype>

namespace frostpipe {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::optional<std::string> nearest_spelling(std::string_view word, const std::vector<std::string>& known) {
  if (known.empty()) return std::nullopt;
  const auto nearest = std::min_element(known.begin(), known.end(), [&](const std::string& a, const std::string& b) {
    return edit_distance(word, a) < edit_distance(word, b);
  });
  if (edit_distance(word, *nearest) <= 1 + word.size() / 4) return *nearest;
  const auto continues = [&](const std::string& one) { return one.starts_with(word); };
  const auto first = std::find_if(known.begin(), known.end(), continues);
  if (first == known.end() || std::find_if(first + 1, known.end(), continues) != known.end()) return std::nullopt;
  return *first;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return std::ranges::equal(a, b, {}, lower, lower);
}

}  // namespace frostpipe
