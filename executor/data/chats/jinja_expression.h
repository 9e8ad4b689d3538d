#pragma once
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "executor/data/chats/jinja_parts.h"
#include "executor/data/chats/jinja_value.h"

namespace frostpipe::jinja {

/// A scope of variables. Each iteration of a loop, each call of a macro and each block of a set has a scope of its own.
class Scope {
 public:
  explicit Scope(Scope* outer = nullptr) : outer_(outer) {}
  /// Returns the variable from this scope or the nearest outer one that has it, else the built-in function of that
  /// name, else Undefined.
  Value get(const std::string& name) const;
  void set(const std::string& name, Value value) { names_[name] = std::move(value); }
  /// Counts a step of the rendering. Throws InvalidInput after 400,000 steps, more than any chat needs.
  void step();
  /// The number of calls of macros that have begun and not ended.
  int& calls() { return outer_ ? outer_->calls() : calls_; }

 private:
  Scope* outer_;
  std::map<std::string, Value> names_;
  std::size_t steps_ = 0;  // this and calls_ are counted in the outermost scope only
  int calls_ = 0;
};

using Expression = std::function<Value(Scope&)>;

/// The tokens of a tag, consumed from left to right. The list must end with a token of Kind::end and outlive this
/// object.
class Tokens {
 public:
  explicit Tokens(const std::vector<Token>& tokens) : tokens_(tokens) {}
  const Token& next() const { return tokens_[at_]; }
  Token take() { return at_ + 1 < tokens_.size() ? tokens_[at_++] : tokens_[at_]; }
  /// Returns whether the next token is that name or sign, and consumes it if so.
  bool take_if(std::string_view word);
  bool is_next(std::string_view word) const;
  bool is_at_end() const { return next().kind == Token::Kind::end; }
  /// These throw InvalidInput unless the next token is the expected one, which the first two consume.
  void expect(std::string_view word);
  std::string expect_name();
  void expect_end() const;

 private:
  const std::vector<Token>& tokens_;
  std::size_t at_ = 0;
};

/// Parses an expression: strings, integers, lists, objects, names, `a.b`, `a[b]`, `a[b:c]`, calls, filters, tests,
/// arithmetic, comparisons, `not`, `and`, `or`, `a if b else c`. Throws InvalidInput for a syntax error, and for
/// brackets nested too deeply. Names, filters and methods are looked up at evaluation, so unsupported ones in parts
/// that are never reached do no harm.
Expression take_expression(Tokens& tokens);
/// Parses an expression that is not `a if b else c`, such as the iterable of a loop, which an `if` may follow.
Expression take_or(Tokens& tokens);

}  // namespace frostpipe::jinja
