#include "executor/data/chats/jinja_expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/error_values.h"
#include "executor/data/chats/jinja_builtins.h"
#include "executor/data/chats/jinja_operators.h"

namespace frostpipe::jinja {
namespace {

constexpr std::size_t kMaxSteps = 400'000;

std::string shown(const Token& token) {
  return token.kind == Token::Kind::end ? std::string("the end of the tag") : in_quotes(token.text);
}

class Parser {
 public:
  explicit Parser(Tokens& tokens) : tokens_(tokens) {}

  Expression conditional() {
    const Depth depth(*this);
    Expression value = either();
    while (tokens_.take_if("if")) {
      const Expression condition = either();
      const Expression other = tokens_.take_if("else") ? conditional() : [](Scope&) -> Value { return Undefined{}; };
      value = [=, chosen = std::move(value)](Scope& scope) {
        return condition(scope).is_true() ? chosen(scope) : other(scope);
      };
    }
    return value;
  }

  Expression either() {
    const Depth depth(*this);
    Expression value = both();
    while (tokens_.take_if("or")) {
      value = [first = std::move(value), second = both()](Scope& scope) {
        Value found = first(scope);
        return found.is_true() ? found : second(scope);
      };
    }
    return value;
  }

 private:
  /// Limits recursion, so that nested expressions cannot overflow the stack.
  struct Depth {
    explicit Depth(Parser& parser) : nesting(parser.nesting_) {
      if (++nesting > 4 * kMaxNesting)
        throw InvalidInput("an expression", fmt::format("must nest at most {} deep", kMaxNesting), "deeper");
    }
    ~Depth() { --nesting; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    int& nesting;
  };

  Expression both() {
    Expression value = negation();
    while (tokens_.take_if("and")) {
      value = [first = std::move(value), second = negation()](Scope& scope) {
        Value found = first(scope);
        return found.is_true() ? second(scope) : found;
      };
    }
    return value;
  }

  Expression negation() {
    const Depth depth(*this);
    if (tokens_.take_if("not")) return [value = negation()](Scope& scope) -> Value { return !value(scope).is_true(); };
    return comparison();
  }

  Expression comparison() {
    Expression value = addition();
    for (;;) {
      bool is_wanted = true;
      std::string sign;
      for (const char* one : {"==", "!=", "<=", ">=", "<", ">", "in"}) {
        if (sign.empty() && tokens_.take_if(one)) sign = one;
      }
      if (sign.empty() && tokens_.take_if("not")) {
        tokens_.expect("in");
        sign = "in";
        is_wanted = false;
      }
      if (sign.empty()) return value;
      value = [=, a = std::move(value), b = addition()](Scope& scope) -> Value {
        return compare(sign, a(scope), b(scope)) == is_wanted;
      };
    }
  }

  /// Parses left-associative operators of one precedence; `take` parses the operands.
  Expression chain(std::initializer_list<const char*> signs, Expression (Parser::*take)()) {
    Expression value = (this->*take)();
    for (;;) {
      const auto found =
          std::find_if(signs.begin(), signs.end(), [&](const char* one) { return tokens_.take_if(one); });
      if (found == signs.end()) return value;
      value = [sign = std::string(*found), a = std::move(value), b = (this->*take)()](Scope& scope) {
        return arithmetic(sign, a(scope), b(scope));
      };
    }
  }
  Expression addition() { return chain({"+", "-"}, &Parser::concatenation); }
  Expression concatenation() { return chain({"~"}, &Parser::product); }
  Expression product() { return chain({"*", "//", "/", "%"}, &Parser::signed_value); }

  Expression signed_value() {
    const Depth depth(*this);
    if (tokens_.take_if("-"))
      return [value = signed_value()](Scope& scope) -> Value { return -need_number(value(scope), "the operand of -"); };
    return filters(postfix(primary()));
  }

  Expression postfix(Expression value) {
    for (;;) {
      if (tokens_.take_if(".")) {
        value = [object = std::move(value), name = tokens_.expect_name()](Scope& scope) {
          return attribute(object(scope), name);
        };
      } else if (tokens_.take_if("[")) {
        value = subscript(std::move(value));
      } else if (tokens_.is_next("(")) {
        value = [function = std::move(value), arguments = take_arguments()](Scope& scope) {
          const Value found = function(scope);
          if (const auto* callable = found.as<std::shared_ptr<Function>>()) return (**callable)(arguments(scope));
          throw InvalidInput("what is called",
                             "must be a function that is known here (raise_exception, namespace, dict, range, "
                             "strftime_now)",
                             kind_of(found));
        };
      } else {
        return value;
      }
    }
  }

  Expression filters(Expression value) {
    for (;;) {
      if (tokens_.take_if("|")) {
        const std::string name = tokens_.expect_name();
        const std::function<Arguments(Scope&)> arguments = arguments_if_any();
        value = [=, input = std::move(value)](Scope& scope) { return filtered(name, input(scope), arguments(scope)); };
      } else if (tokens_.take_if("is")) {
        const bool is_wanted = !tokens_.take_if("not");
        const std::string name = tokens_.expect_name();
        const std::function<Arguments(Scope&)> arguments = arguments_if_any();
        value = [=, input = std::move(value)](Scope& scope) -> Value {
          return passes_test(name, input(scope), arguments(scope)) == is_wanted;
        };
      } else {
        return value;
      }
    }
  }

  Expression subscript(Expression object) {
    const auto bound = [&]() -> std::optional<Expression> {
      if (tokens_.is_next(":") || tokens_.is_next("]")) return std::nullopt;
      return conditional();
    };
    const std::optional<Expression> begin = bound();
    if (begin && tokens_.take_if("]")) return [=](Scope& scope) { return element(object(scope), (*begin)(scope)); };
    tokens_.expect(":");
    const std::optional<Expression> end = bound();
    const std::optional<Expression> step = tokens_.take_if(":") ? bound() : std::nullopt;
    tokens_.expect("]");
    return [=](Scope& scope) {
      const auto number = [&](const std::optional<Expression>& one) -> std::optional<std::int64_t> {
        if (!one) return std::nullopt;
        return need_number((*one)(scope), "a bound of a slice");
      };
      return slice(object(scope), number(begin), number(end), number(step).value_or(1));
    };
  }

  std::function<Arguments(Scope&)> arguments_if_any() {
    if (tokens_.is_next("(")) return take_arguments();
    return [](Scope&) { return Arguments{}; };
  }

  std::function<Arguments(Scope&)> take_arguments() {
    tokens_.expect("(");
    std::vector<std::pair<std::string, Expression>> given;
    while (!tokens_.take_if(")")) {
      if (!given.empty()) {
        tokens_.expect(",");
        if (tokens_.take_if(")")) break;
      }
      Tokens ahead = tokens_;
      const bool is_named = ahead.take().kind == Token::Kind::name && ahead.is_next("=");
      const std::string name = is_named ? tokens_.expect_name() : "";
      if (is_named) tokens_.expect("=");
      given.emplace_back(name, conditional());
    }
    return [given](Scope& scope) {
      Arguments arguments;
      for (const auto& [name, value] : given) {
        if (name.empty())
          arguments.values.push_back(value(scope));
        else
          arguments.named.emplace_back(name, value(scope));
      }
      return arguments;
    };
  }

  /// Parses elements up to `closing`; the opening bracket has been consumed.
  std::vector<Expression> elements(std::string_view closing) {
    std::vector<Expression> found;
    while (!tokens_.take_if(closing)) {
      if (!found.empty()) {
        tokens_.expect(",");
        if (tokens_.take_if(closing)) break;
      }
      found.push_back(conditional());
    }
    return found;
  }

  Expression list_of(std::vector<Expression> given) {
    return [given = std::move(given)](Scope& scope) {
      List items;
      for (const Expression& one : given) items.push_back(one(scope));
      return list_value(std::move(items));
    };
  }

  Expression object() {
    std::vector<std::pair<Expression, Expression>> given;
    while (!tokens_.take_if("}")) {
      if (!given.empty()) {
        tokens_.expect(",");
        if (tokens_.take_if("}")) break;
      }
      Expression key = conditional();
      tokens_.expect(":");
      given.emplace_back(std::move(key), conditional());
    }
    return [given](Scope& scope) {
      Members members;
      for (const auto& [key, value] : given)
        set_member(members, bytes_of(need_text(key(scope), "a key")), value(scope));
      return members_value(std::move(members));
    };
  }

  Expression primary() {
    const auto constant = [](Value value) -> Expression { return [=](Scope&) { return value; }; };
    if (tokens_.take_if("(")) {
      Expression value = conditional();
      if (!tokens_.take_if(",")) {
        tokens_.expect(")");
        return value;
      }
      std::vector<Expression> all = elements(")");
      all.insert(all.begin(), std::move(value));
      return list_of(std::move(all));
    }
    if (tokens_.take_if("[")) return list_of(elements("]"));
    if (tokens_.take_if("{")) return object();
    const Token token = tokens_.take();
    if (token.kind == Token::Kind::number) return constant(static_cast<std::int64_t>(std::stoll(token.text)));
    if (token.kind == Token::Kind::text) {
      std::string text = token.text;
      while (tokens_.next().kind == Token::Kind::text) text += tokens_.take().text;
      return constant(text_of(text));
    }
    if (token.kind != Token::Kind::name) throw InvalidInput("an expression", "must have a value here", shown(token));
    const std::string& name = token.text;
    if (name == "true" || name == "True") return constant(true);
    if (name == "false" || name == "False") return constant(false);
    if (name == "none" || name == "None") return constant(None{});
    return [name](Scope& scope) { return scope.get(name); };
  }

  Tokens& tokens_;
  int nesting_ = 0;
};

}  // namespace

Value Scope::get(const std::string& name) const {
  for (const Scope* scope = this; scope; scope = scope->outer_) {
    if (const auto found = scope->names_.find(name); found != scope->names_.end()) return found->second;
  }
  if (std::optional<Value> function = builtin_function(name)) return *std::move(function);
  return Undefined{name};
}

void Scope::step() {
  if (outer_) return outer_->step();
  if (++steps_ > kMaxSteps) throw InvalidInput("the loops of a template", "must end within 400,000 steps", "more");
}

bool Tokens::is_next(std::string_view word) const {
  return (next().kind == Token::Kind::name || next().kind == Token::Kind::sign) && next().text == word;
}

bool Tokens::take_if(std::string_view word) {
  if (!is_next(word)) return false;
  take();
  return true;
}

void Tokens::expect(std::string_view word) {
  if (!take_if(word)) throw InvalidInput("an expression", fmt::format("must have {} here", word), shown(next()));
}

std::string Tokens::expect_name() {
  if (next().kind != Token::Kind::name) throw InvalidInput("a tag", "must have a name here", shown(next()));
  return take().text;
}

void Tokens::expect_end() const {
  if (!is_at_end()) throw InvalidInput("a tag", "must end here", shown(next()));
}

Expression take_expression(Tokens& tokens) { return Parser(tokens).conditional(); }
Expression take_or(Tokens& tokens) { return Parser(tokens).either(); }

}  // namespace frostpipe::jinja
