#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "executor/data/chats/jinja_expression.h"
#include "executor/data/chats/jinja_parts.h"

namespace frostpipe::jinja {

/// A template of Jinja, as far as chat templates go: for (with if and else), if, set (also of a namespace's members and
/// of a block), macro, generation, and the expressions of take_expression. Reading it checks its whole form; what a
/// filter, test, method or function means is looked up where it is reached.
class Template {
 public:
  /// Throws InvalidInput that names the line, the rule and the value.
  explicit Template(std::string_view source);

  /// What it writes with these names set. Throws InvalidInput that names the line, also where the template itself
  /// raises an exception. Ends, whatever the template says.
  Text render(const std::map<std::string, Value>& names) const;

 private:
  using Block = std::function<void(Scope&, Text& written)>;
  class Reader;

  Block block_;
};

}  // namespace frostpipe::jinja
