#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace frostpipe::jinja {

/// A token of the language inside a tag.
struct Token {
  enum class Kind { name, number, text, sign, end };
  Kind kind = Kind::end;
  std::string text;  // for a string: its value, with escapes resolved
};

/// A part of a template: literal text, {{ an expression }}, or {% a statement %}.
struct Part {
  enum class Kind { text, output, statement };
  Kind kind = Kind::text;
  std::string text;           // of Kind::text
  std::vector<Token> tokens;  // of the other kinds; the last one has Token::Kind::end
  std::size_t line = 1;       // at which the part begins
};

/// Splits a template into parts and removes its comments. trim_blocks and lstrip_blocks are on, as in transformers: the
/// newline after a statement or a comment is removed, and so are blanks between the beginning of its line and its tag.
/// Throws InvalidInput that names line and rule.
std::vector<Part> parts_of(std::string_view source);

}  // namespace frostpipe::jinja
