#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace frostpipe::jinja {

/// A word of the language inside a tag.
struct Token {
  enum class Kind { name, number, text, sign, end };
  Kind kind = Kind::end;
  std::string text;  // of a text: what it stands for, escapes resolved
};

/// A stretch of a template: text that is written as it is, {{ an expression }}, or {% a statement %}.
struct Part {
  enum class Kind { text, output, statement };
  Kind kind = Kind::text;
  std::string text;           // of a text
  std::vector<Token> tokens;  // of a tag
  std::size_t line = 1;
};

/// The parts of a template without its comments, as Jinja cuts it with trim_blocks and lstrip_blocks, which is how
/// transformers reads chat templates: the line end after a statement and the blanks before it are not written.
/// Throws InvalidInput that names line and rule.
std::vector<Part> parts_of(std::string_view source);

}  // namespace frostpipe::jinja
