#include "executor/data/chats/jinja_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/error_values.h"

namespace frostpipe::jinja {
namespace {

constexpr std::size_t kMaxTokens = 2'000;  // of a tag; limits how deeply its expression is nested

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }

class Cutter {
 public:
  explicit Cutter(std::string_view source) : source_(source) {}

  std::vector<Part> cut() {
    while (at_ < source_.size()) {
      const std::size_t tag = next_tag();
      add_text(tag);
      if (tag == std::string_view::npos) break;
      at_ = tag;
      take_tag();
    }
    return std::move(parts_);
  }

 private:
  [[noreturn]] void refuse(std::string_view rule, std::string_view value) const {
    throw InvalidInput(fmt::format("line {}", line_of(at_)), rule, value);
  }

  std::size_t line_of(std::size_t at) const {
    return 1 + static_cast<std::size_t>(std::count(source_.begin(), source_.begin() + static_cast<long>(at), '\n'));
  }

  std::size_t next_tag() const {
    for (std::size_t i = at_; i + 1 < source_.size(); ++i) {
      if (source_[i] == '{' && (source_[i + 1] == '{' || source_[i + 1] == '%' || source_[i + 1] == '#')) return i;
    }
    return std::string_view::npos;
  }

  /// Adds the text before the tag, without the white space that the tag strips.
  void add_text(std::size_t tag) {
    std::string_view text = source_.substr(at_, tag == std::string_view::npos ? tag : tag - at_);
    if (tag != std::string_view::npos) {
      const char sign = tag + 2 < source_.size() ? source_[tag + 2] : ' ';
      if (sign == '-') {
        while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
      } else if (sign != '+' && source_[tag + 1] != '{') {
        const std::size_t line = text.rfind('\n') + 1;  // npos + 1 is 0
        if ((line > 0 || begins_line_) && std::all_of(text.begin() + static_cast<long>(line), text.end(), is_space))
          text = text.substr(0, line);
      }
    }
    if (!text.empty()) parts_.push_back({.text = std::string(text), .tokens = {}, .line = line_of(at_)});
  }

  /// Parses the tag at at_, and moves at_ past it and past the white space that it strips.
  void take_tag() {
    const std::size_t begin = at_;
    const char kind = source_[at_ + 1];
    at_ += 2;
    if (kind == '#') {
      const std::size_t end = source_.find("#}", at_);
      if (end == std::string_view::npos) refuse("a comment must end in #}", "without it");
      end_tag(end, /*trims_line_end=*/true);
      return;
    }
    if (at_ < source_.size() && (source_[at_] == '-' || source_[at_] == '+')) ++at_;
    Part part{.kind = kind == '{' ? Part::Kind::output : Part::Kind::statement,
              .text = {},
              .tokens = {},
              .line = line_of(begin)};
    const std::string_view closing = kind == '{' ? "}}" : "%}";
    std::vector<char> open;  // open brackets; "}}" also occurs in nested objects
    for (;;) {
      while (at_ < source_.size() && is_space(source_[at_])) ++at_;
      if (at_ >= source_.size()) refuse(fmt::format("a tag must end in {}", closing), "without it");
      const std::string_view rest = source_.substr(at_);
      const bool has_sign = (rest[0] == '-' || rest[0] == '+') && rest.substr(1).starts_with(closing);
      if (open.empty() && (has_sign || rest.starts_with(closing))) break;
      part.tokens.push_back(next_token());
      if (part.tokens.size() > kMaxTokens) refuse("a tag must have at most 2,000 words", "more");
      const std::string& text = part.tokens.back().text;
      if (part.tokens.back().kind != Token::Kind::sign) continue;
      if (text == "(" || text == "[" || text == "{") open.push_back(text[0]);
      if ((text == ")" || text == "]" || text == "}") && !open.empty()) open.pop_back();
    }
    part.tokens.push_back({});
    parts_.push_back(std::move(part));
    end_tag(source_[at_] == '-' || source_[at_] == '+' ? at_ + 1 : at_, kind == '%');
  }

  /// Moves at_ past the end of a tag and the white space that the tag strips. `end` is the position of the closing
  /// sign, which a - or + may precede.
  void end_tag(std::size_t end, bool trims_line_end) {
    const char sign = source_[end - 1];
    at_ = end + 2;
    const std::size_t behind = at_;
    if (sign == '-') {
      while (at_ < source_.size() && is_space(source_[at_])) ++at_;
    } else if (sign != '+' && trims_line_end && at_ < source_.size() && source_[at_] == '\n') {
      ++at_;
    }
    begins_line_ = at_ > behind && source_[at_ - 1] == '\n';
  }

  Token next_token() {
    const char c = source_[at_];
    if (c == '"' || c == '\'') return text_token(c);
    const std::size_t begin = at_;
    const auto take_while = [&](auto is_part) {
      while (at_ < source_.size() && is_part(source_[at_])) ++at_;
      return std::string(source_.substr(begin, at_ - begin));
    };
    if (is_digit(c)) {
      Token token{Token::Kind::number, take_while(is_digit)};
      if (token.text.size() > 15) refuse("a number must have at most 15 digits", token.text);
      return token;
    }
    if (begins_name(c))
      return {Token::Kind::name, take_while([](char one) { return begins_name(one) || is_digit(one); })};
    for (const std::string_view sign : {"==", "!=", "<=", ">=", "//"}) {
      if (!source_.substr(at_).starts_with(sign)) continue;
      at_ += 2;
      return {Token::Kind::sign, std::string(sign)};
    }
    if (std::string_view("+-*/%~<>=.,:|()[]{}").find(c) == std::string_view::npos)
      refuse("must be a sign of an expression", in_quotes(std::string_view(&c, 1)));
    ++at_;
    return {Token::Kind::sign, std::string(1, c)};
  }

  Token text_token(char quote) {
    Token token{Token::Kind::text, {}};
    for (++at_; at_ < source_.size() && source_[at_] != quote; ++at_) {
      if (source_[at_] != '\\' || at_ + 1 == source_.size()) {
        token.text += source_[at_];
        continue;
      }
      ++at_;
      static constexpr std::string_view kEscapes = "n\nt\tr\r\\\\''\"\"";
      bool is_known = false;
      for (std::size_t i = 0; i < kEscapes.size() && !is_known; i += 2) {
        is_known = kEscapes[i] == source_[at_];
        if (is_known) token.text += kEscapes[i + 1];
      }
      if (source_[at_] == 'u' || source_[at_] == 'x' || source_[at_] == 'U' || is_digit(source_[at_]))
        refuse("an escape in a text must be one of \\n \\t \\r \\\\ \\' \\\"", in_quotes(source_.substr(at_ - 1, 2)));
      if (!is_known) token.text += {'\\', source_[at_]};
    }
    if (at_ == source_.size()) refuse("a text must end in the quote that it begins with", "without it");
    ++at_;
    return token;
  }

  std::string_view source_;
  std::size_t at_ = 0;
  bool begins_line_ = true;
  std::vector<Part> parts_;
};

}  // namespace

std::vector<Part> parts_of(std::string_view source) {
  std::string lines;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r')
      lines += source[i];
    else if (i + 1 == source.size() || source[i + 1] != '\n')
      lines += '\n';  // Jinja counts a lone \r as the end of a line
  }
  if (lines.ends_with('\n')) lines.pop_back();
  return Cutter(lines).cut();
}

}  // namespace frostpipe::jinja
