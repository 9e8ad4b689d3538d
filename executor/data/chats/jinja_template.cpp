#include "executor/data/chats/jinja_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/error_values.h"

namespace frostpipe::jinja {
namespace {

/// Calls `call`. Puts "line N: " before the message of InvalidInput, unless it names a line already.
template <class Call>
auto in_line(std::size_t line, Call call) {
  try {
    return call();
  } catch (const InvalidInput& error) {
    const std::string what = error.what();
    if (what.starts_with("line ")) throw;  // already has an inner line
    throw InvalidInput(fmt::format("line {}: {}", line, what));
  }
}

Members loop_at(const List& elements, std::size_t index) {
  const auto number = static_cast<std::int64_t>(index), count = static_cast<std::int64_t>(elements.size());
  Members loop{{"index0", number},
               {"index", number + 1},
               {"first", index == 0},
               {"last", number + 1 == count},
               {"length", count},
               {"revindex", count - number},
               {"revindex0", count - number - 1}};
  if (index > 0) loop.emplace_back("previtem", elements[index - 1]);
  if (number + 1 < count) loop.emplace_back("nextitem", elements[index + 1]);
  return loop;
}

/// Sets the variables of a loop: a single one to the element, several to the elements of the element.
void set_names(const std::vector<std::string>& names, const Value& element, Scope& scope) {
  if (names.size() == 1) return scope.set(names.front(), element);
  const List parts = elements_of(element);
  if (parts.size() != names.size())
    throw InvalidInput("an element of a loop", fmt::format("must have {} elements", names.size()),
                       fmt::format("with {}", parts.size()));
  for (std::size_t i = 0; i < names.size(); ++i) scope.set(names[i], parts[i]);
}

}  // namespace

class Template::Reader {
 public:
  explicit Reader(std::string_view source) : parts_(parts_of(source)) {}

  Block whole() {
    Block block = blocks({});
    return block;
  }

 private:
  /// Parses blocks up to one of the statements `ends`, which is not consumed; to the end of the template if `ends` is
  /// empty.
  Block blocks(const std::vector<std::string_view>& ends) {
    if (++nesting_ > kMaxNesting)
      throw InvalidInput("a template", fmt::format("must nest at most {} deep", kMaxNesting), "deeper");
    std::vector<std::pair<std::size_t, Block>> found;
    while (at_ < parts_.size() && !is_statement(ends)) {
      const std::size_t line = parts_[at_].line;
      found.emplace_back(line, in_line(line, [&] { return block(); }));
    }
    if (at_ == parts_.size() && !ends.empty())
      throw InvalidInput("the end of the template", fmt::format("must have {} before it", in_quotes(ends.back())),
                         "without it");
    --nesting_;
    return [found](Scope& scope, Text& written) {
      for (const auto& [line, one] : found) {
        in_line(line, [&, &block = one] {
          scope.step();
          block(scope, written);
          if (written.size() > kMaxTextBytes)
            throw InvalidInput("the rendered text", "must have at most 64 MiB", "longer");
        });
      }
    };
  }

  bool is_statement(const std::vector<std::string_view>& words) const {
    const Part& part = parts_[at_];
    return part.kind == Part::Kind::statement && part.tokens.front().kind == Token::Kind::name &&
           std::find(words.begin(), words.end(), part.tokens.front().text) != words.end();
  }

  Block block() {
    const Part& part = parts_[at_++];
    if (part.kind == Part::Kind::text) return [text = text_of(part.text)](Scope&, Text& written) { written += text; };
    Tokens tokens(part.tokens);
    if (part.kind == Part::Kind::output) {
      const Expression value = take_expression(tokens);
      tokens.expect_end();
      return [value](Scope& scope, Text& written) { written += printed(value(scope)); };
    }
    const std::string word = tokens.expect_name();
    if (word == "if") return condition(tokens);
    if (word == "for") return loop(tokens);
    if (word == "set") return assignment(tokens);
    if (word == "macro") return macro(tokens);
    if (word == "generation") return inner({"endgeneration"});
    throw InvalidInput("a statement", "must be one that is known here (if, for, set, macro, generation)",
                       in_quotes(word));
  }

  /// Parses blocks up to one of the statements `ends`, which is consumed.
  Block inner(const std::vector<std::string_view>& ends) {
    Block block = blocks(ends);
    ++at_;
    return block;
  }

  Block condition(Tokens& tokens) {
    std::vector<std::pair<Expression, Block>> branches;
    Expression asked = take_expression(tokens);
    tokens.expect_end();
    Block otherwise = [](Scope&, Text&) {};
    for (;;) {
      Block branch = blocks({"elif", "else", "endif"});
      branches.emplace_back(std::move(asked), std::move(branch));
      Tokens next(parts_[at_++].tokens);
      const std::string word = next.expect_name();
      if (word == "else") otherwise = inner({"endif"});
      if (word != "elif") break;
      asked = take_expression(next);
      next.expect_end();
    }
    return [branches, otherwise](Scope& scope, Text& written) {
      for (const auto& [is_wanted, branch] : branches) {
        if (is_wanted(scope).is_true()) return branch(scope, written);
      }
      otherwise(scope, written);
    };
  }

  std::vector<std::string> names_of(Tokens& tokens) {
    std::vector<std::string> names{tokens.expect_name()};
    while (tokens.take_if(",")) names.push_back(tokens.expect_name());
    return names;
  }

  Block loop(Tokens& tokens) {
    const std::vector<std::string> names = names_of(tokens);
    tokens.expect("in");
    const Expression all = take_or(tokens);
    std::optional<Expression> is_wanted;
    if (tokens.take_if("if")) is_wanted = take_or(tokens);
    tokens.expect_end();
    const Block body = blocks({"else", "endfor"});
    Tokens next(parts_[at_++].tokens);
    const Block otherwise = next.take_if("else") ? inner({"endfor"}) : [](Scope&, Text&) {};
    return [=](Scope& outer, Text& written) {
      List elements = elements_of(all(outer));
      if (is_wanted) {
        std::erase_if(elements, [&](const Value& element) {
          Scope scope(&outer);
          set_names(names, element, scope);
          return !(*is_wanted)(scope).is_true();
        });
      }
      for (std::size_t i = 0; i < elements.size(); ++i) {
        Scope scope(&outer);
        set_names(names, elements[i], scope);
        scope.set("loop", members_value(loop_at(elements, i)));
        scope.step();
        body(scope, written);
      }
      if (elements.empty()) otherwise(outer, written);
    };
  }

  Block assignment(Tokens& tokens) {
    const std::string name = tokens.expect_name();
    if (tokens.take_if(".")) {
      const std::string member = tokens.expect_name();
      tokens.expect("=");
      const Expression value = take_expression(tokens);
      tokens.expect_end();
      return [=](Scope& scope, Text&) {
        const Value object = scope.get(name);
        const auto* space = object.as<std::shared_ptr<Namespace>>();
        if (!space) throw InvalidInput(name, "must be a namespace", kind_of(object));
        set_member(**space, member, value(scope));
      };
    }
    if (tokens.take_if("=")) {
      const Expression value = take_expression(tokens);
      tokens.expect_end();
      return [=](Scope& scope, Text&) { scope.set(name, value(scope)); };
    }
    tokens.expect_end();
    const Block body = inner({"endset"});
    return [=](Scope& outer, Text&) {
      Scope scope(&outer);
      Text text;
      body(scope, text);
      outer.set(name, std::move(text));
    };
  }

  /// Parses a macro. It must be at the outermost level, whose scope lives as long as the macro can be called.
  Block macro(Tokens& tokens) {
    const std::string name = tokens.expect_name();
    if (nesting_ != 1) throw InvalidInput("a macro", "must stand outside of loops and conditions", in_quotes(name));
    std::vector<std::pair<std::string, std::optional<Expression>>> parameters;
    tokens.expect("(");
    while (!tokens.take_if(")")) {
      if (!parameters.empty()) tokens.expect(",");
      const std::string parameter = tokens.expect_name();
      std::optional<Expression> otherwise;
      if (tokens.take_if("=")) otherwise = take_expression(tokens);
      parameters.emplace_back(parameter, otherwise);
    }
    tokens.expect_end();
    const Block body = inner({"endmacro"});
    std::vector<std::string> names;
    for (const auto& [parameter, otherwise] : parameters) names.push_back(parameter);
    return [=](Scope& outer, Text&) {
      outer.set(name, function_value([=, &outer](const Arguments& arguments) -> Value {
                  if (++outer.calls() > kMaxCalls)
                    throw InvalidInput("a macro", fmt::format("must be called from at most {} others", kMaxCalls - 1),
                                       in_quotes(name));
                  const std::vector<const Value*> given = bound("the macro " + in_quotes(name), arguments, names);
                  Scope scope(&outer);
                  for (std::size_t i = 0; i < parameters.size(); ++i) {
                    const auto& [parameter, otherwise] = parameters[i];
                    scope.set(parameter, given[i] ? *given[i] : otherwise ? (*otherwise)(scope) : Undefined{parameter});
                  }
                  scope.step();
                  Text written;
                  body(scope, written);
                  --outer.calls();
                  return written;
                }));
    };
  }

  std::vector<Part> parts_;
  std::size_t at_ = 0;
  int nesting_ = 0;
};

Template::Template(std::string_view source) : block_(Reader(source).whole()) {}

Text Template::render(const std::map<std::string, Value>& names) const {
  Scope scope;
  for (const auto& [name, value] : names) scope.set(name, value);
  Text written;
  block_(scope, written);
  return written;
}

}  // namespace frostpipe::jinja
