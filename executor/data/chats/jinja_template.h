#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "executor/data/chats/jinja_expression.h"
#include "executor/data/chats/jinja_parts.h"

namespace frostpipe::jinja {

/// A Jinja template, as far as chat templates need it: for (with if and else), if, set (also of namespace members and
/// of blocks), macro (outside of loops and conditions), generation, and the expressions of take_expression(). The
/// constructor checks the whole syntax; filters, tests, methods and functions are looked up when they are reached.
class Template {
 public:
  /// Throws InvalidInput that names line, rule and value.
  explicit Template(std::string_view source);

  /// Renders the template with these variables. Throws InvalidInput that names the line, also if the template raises an
  /// exception. Always terminates.
  Text render(const std::map<std::string, Value>& names) const;

 private:
  using Block = std::function<void(Scope&, Text& written)>;
  class Reader;

  Block block_;
};

}  // namespace frostpipe::jinja
