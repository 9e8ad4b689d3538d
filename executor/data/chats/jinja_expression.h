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

/// Names and what they stand for; a loop has a scope of its own.
class Scope {
 public:
  explicit Scope(Scope* outer = nullptr) : outer_(outer) {}
  /// Undefined where no scope from here outward has it.
  Value get(const std::string& name) const;
  void set(const std::string& name, Value value) { names_[name] = std::move(value); }
  /// Counts a step of the whole rendering. Throws InvalidInput after more than any chat needs.
  void step();

 private:
  Scope* outer_;
  std::map<std::string, Value> names_;
  std::size_t steps_ = 0;  // of the outermost
};

using Expression = std::function<Value(Scope&)>;

/// The words of a tag, taken one after another.
class Tokens {
 public:
  explicit Tokens(const std::vector<Token>& tokens) : tokens_(tokens) {}
  const Token& next() const { return tokens_[at_]; }
  Token take() { return at_ + 1 < tokens_.size() ? tokens_[at_++] : tokens_[at_]; }
  /// Whether the next one is that name or sign, which is then taken.
  bool take_if(std::string_view word);
  bool is_next(std::string_view word) const;
  bool is_at_end() const { return next().kind == Token::Kind::end; }
  /// Throw InvalidInput for anything else.
  void expect(std::string_view word);
  std::string expect_name();
  void expect_end() const;

 private:
  const std::vector<Token>& tokens_;
  std::size_t at_ = 0;
};

/// Takes an expression of Jinja: texts, whole numbers, lists, objects, names, `a.b`, `a[b]`, `a[b:c]`, calls, filters,
/// tests, arithmetic, comparisons, `not`, `and`, `or`, `a if b else c`. Throws InvalidInput where there is none. What a
/// name, filter or method means is looked up when it is evaluated: what is never reached need not be known.
Expression take_expression(Tokens& tokens);
/// Without `a if b else c` at its end, as what a loop runs over.
Expression take_or(Tokens& tokens);

}  // namespace frostpipe::jinja
