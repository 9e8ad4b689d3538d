#pragma once
#include <cstddef>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace frostpipe::test {

/// The first error in a piece of XML or HTML: a tag that is not closed or closed too often, an attribute without
/// quotes, an unescaped < or &. Returns "" if there is none. Comments and scripts are not supported; text inside
/// <style> is skipped.
inline std::string fault_of(std::string_view markup) {
  static const std::set<std::string> kNeverClosed = {"meta", "input", "br"};
  static const std::regex kTag(R"(</?[A-Za-z][A-Za-z0-9]*(\s+[A-Za-z][A-Za-z0-9-]*(="[^"<]*")?)*\s*/?>)");
  static const std::regex kEntity("&(amp|lt|gt|quot|#39);");
  constexpr auto kHere = std::regex_constants::match_continuous;
  std::vector<std::string> open;
  for (std::size_t at = 0; at < markup.size();) {
    const std::string_view rest = markup.substr(at);
    std::cmatch found;
    const char* const end = rest.data() + rest.size();
    if (rest[0] == '&') {
      if (!std::regex_search(rest.data(), end, found, kEntity, kHere))
        return "stray & in " + std::string(rest.substr(0, 40));
      at += static_cast<std::size_t>(found.length());
      continue;
    }
    if (rest[0] != '<') {
      ++at;
      continue;
    }
    if (rest.starts_with("<!DOCTYPE")) {
      at += rest.find('>') + 1;
      continue;
    }
    if (!std::regex_search(rest.data(), end, found, kTag, kHere)) return "no tag: " + std::string(rest.substr(0, 80));
    const std::string tag = found.str();
    at += tag.size();
    const std::size_t begin = tag[1] == '/' ? 2 : 1;
    const std::string name = tag.substr(begin, tag.find_first_of(" \n/>", begin) - begin);
    if (tag[1] == '/') {
      if (open.empty() || open.back() != name) return "closes " + name + " in " + (open.empty() ? "" : open.back());
      open.pop_back();
    } else if (!tag.ends_with("/>") && !kNeverClosed.contains(name)) {
      open.push_back(name);
      if (name == "style") at = markup.find("</style>", at);
    }
  }
  return open.empty() ? "" : "never closes " + open.back();
}

/// The number of occurrences of `part` in `text`.
inline int count_of(std::string_view part, std::string_view text) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

}  // namespace frostpipe::test
