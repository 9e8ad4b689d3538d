#include "executor/data/chats/jinja_texts.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "base/error.h"
#include "base/error_values.h"

namespace frostpipe::jinja {
namespace {

Value split(const Text& text, const Arguments& arguments) {
  const std::vector<const Value*> all = bound("split", arguments, {"sep", "maxsplit"});
  const Value* const given = all[0];
  if (!given || given->as<None>()) throw InvalidInput("split", "must have a separator", "without it");
  const Text& separator = need_text(*given, "the separator of split");
  if (separator.empty()) throw InvalidInput("the separator of split", "must not be empty", "\"\"");
  std::int64_t left = all[1] ? need_number(*all[1], "the number of splits") : -1;
  List parts;
  std::size_t begin = 0;
  for (std::size_t at = 0; left != 0 && (at = text.find(separator, begin)) != Text::npos; --left) {
    if (parts.size() == kMaxElements) throw InvalidInput("a list", "must have at most 2^20 elements", "more");
    parts.emplace_back(text.substr(begin, at - begin));
    begin = at + separator.size();
  }
  parts.emplace_back(text.substr(begin));
  return list_value(std::move(parts));
}

/// Replaces `most` occurrences from the left; all if it is negative.
Text replaced(const Text& text, const Text& old, const Text& other, std::int64_t most) {
  if (old.empty()) throw InvalidInput("the text to replace", "must not be empty", "\"\"");
  Text result;
  std::size_t begin = 0;
  for (std::size_t at = 0; most != 0 && (at = text.find(old, begin)) != Text::npos; --most) {
    append(result, text.substr(begin, at - begin));
    append(result, other);
    begin = at + old.size();
  }
  append(result, text.substr(begin));
  return result;
}

}  // namespace

Text with_case(Text text, const std::string& name) {
  for (char16_t& c : text) {
    const char16_t byte = MarkedBytes::byte(c);
    if (byte >= 0x80) throw InvalidInput("a text for upper or lower", "must be ASCII", "other text");
    c = static_cast<char16_t>(MarkedBytes::marks(c) | (name == "upper" ? std::toupper(byte) : std::tolower(byte)));
  }
  return text;
}

Text stripped(const Text& text, const Value* wanted, bool left, bool right) {
  // Python also strips Unicode's spaces beyond ASCII.
  static const std::vector<Text> kSpaces = [] {
    std::vector<Text> spaces;
    for (const char* one :
         {" ",      "\t",     "\n",     "\r",     "\v",     "\f",     "\x1C",   "\x1D",   "\x1E",   "\x1F",
          "\u0085", "\u00A0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006",
          "\u2007", "\u2008", "\u2009", "\u200A", "\u2028", "\u2029", "\u202F", "\u205F", "\u3000"})
      spaces.push_back(text_of(one));
    return spaces;
  }();
  const std::vector<Text> set =
      wanted && !wanted->as<None>() ? characters_of(need_text(*wanted, "the characters to strip")) : kSpaces;
  std::size_t begin = 0, end = text.size();
  const auto at_begin = [&](const Text& one) { return text.compare(begin, one.size(), one) == 0; };
  const auto at_end = [&](const Text& one) {
    return end >= begin + one.size() && text.compare(end - one.size(), one.size(), one) == 0;
  };
  for (auto found = set.begin(); left && begin < end;) {
    found = std::find_if(set.begin(), set.end(), at_begin);
    if (found == set.end()) break;
    begin += found->size();
  }
  for (auto found = set.begin(); right && begin < end;) {
    found = std::find_if(set.begin(), set.end(), at_end);
    if (found == set.end()) break;
    end -= found->size();
  }
  return text.substr(begin, end - begin);
}

Text replaced(const Text& text, const Arguments& arguments, const std::vector<std::string>& names) {
  const std::vector<const Value*> all = bound("replace", arguments, names);
  const auto needed = [&](std::size_t i) -> const Text& {
    static const Value kNone = Undefined{"an argument"};
    return need_text(all[i] ? *all[i] : kNone, "an argument of replace");
  };
  const bool has_most = all[2] && !all[2]->as<None>();
  return replaced(text, needed(0), needed(1), has_most ? need_number(*all[2], "the number of replacements") : -1);
}

Value method_of_text(const Text& text, const std::string& name, const Arguments& arguments) {
  const auto first = [&] { return bound_one(name, arguments, ""); };
  const auto needed = [&]() -> Text {
    const Value* const one = first();
    return need_text(one ? *one : Value(Undefined{"an argument"}), "an argument of " + name);
  };
  if (name == "strip") return stripped(text, first(), true, true);
  if (name == "lstrip") return stripped(text, first(), true, false);
  if (name == "rstrip") return stripped(text, first(), false, true);
  if (name == "split") return split(text, arguments);
  if (name == "startswith") return text.starts_with(needed());
  if (name == "endswith") return text.ends_with(needed());
  if (name == "replace") return replaced(text, arguments, {"", "", ""});
  if (name == "upper" || name == "lower") {
    bound(name, arguments, {});
    return with_case(text, name);
  }
  throw InvalidInput("a method of a text",
                     "must be one that is known here (strip, lstrip, rstrip, split, startswith, endswith, replace, "
                     "upper, lower)",
                     in_quotes(name));
}

bool is_method_of_texts(const std::string& name) {
  static const std::set<std::string> kNames{
      "capitalize", "casefold",     "center",       "count",   "encode",     "endswith",    "expandtabs",
      "find",       "format",       "format_map",   "index",   "isalnum",    "isalpha",     "isascii",
      "isdecimal",  "isdigit",      "isidentifier", "islower", "isnumeric",  "isprintable", "isspace",
      "istitle",    "isupper",      "join",         "ljust",   "lower",      "lstrip",      "maketrans",
      "partition",  "removeprefix", "removesuffix", "replace", "rfind",      "rindex",      "rjust",
      "rpartition", "rsplit",       "rstrip",       "split",   "splitlines", "startswith",  "strip",
      "swapcase",   "title",        "translate",    "upper",   "zfill"};
  return kNames.contains(name);
}

}  // namespace frostpipe::jinja
