#include "executor/data/chats/jinja_operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/error_values.h"

namespace frostpipe::jinja {
namespace {

Text joined(Text one, const Text& other) {
  append(one, other);
  return one;
}

/// Returns the sum of two lists or of two texts.
Value sum(const Value& a, const Value& b) {
  const auto *list_a = a.as<std::shared_ptr<List>>(), *list_b = b.as<std::shared_ptr<List>>();
  if (list_a && list_b) {
    List all = **list_a;
    all.insert(all.end(), (*list_b)->begin(), (*list_b)->end());
    return list_value(std::move(all));
  }
  return joined(need_text(a, "what something is added to"), need_text(b, "what is added to a text"));
}

bool contains(const Value& whole, const Value& part) {
  if (const auto* text = whole.as<Text>()) return text->find(need_text(part, "the left operand of in")) != Text::npos;
  if (const auto* members = whole.as<std::shared_ptr<Members>>())
    return find_member(**members, bytes_of(need_text(part, "a key"))) != nullptr;
  const List elements = elements_of(whole);
  return std::any_of(elements.begin(), elements.end(), [&](const Value& one) { return equal(one, part); });
}

}  // namespace

Value arithmetic(const std::string& sign, const Value& a, const Value& b) {
  if (sign == "+" && !a.as<std::int64_t>()) return sum(a, b);
  if (sign == "~") return joined(printed(a), printed(b));
  const std::int64_t left = need_number(a, "the left operand of " + sign),
                     right = need_number(b, "the right operand of " + sign);
  constexpr std::int64_t kMax = std::int64_t{1} << 31;  // rules out overflow of the operators below
  if (std::abs(left) > kMax || std::abs(right) > kMax || (right == 0 && sign != "+" && sign != "-" && sign != "*"))
    throw InvalidInput("numbers around " + sign, "must be below 2^31, a divisor not 0",
                       fmt::format("{} {} {}", left, sign, right));
  if (sign == "+") return left + right;
  if (sign == "-") return left - right;
  if (sign == "*") return left * right;
  const std::int64_t rest = ((left % right) + right) % right;  // Python's modulo
  if (sign == "%") return rest;
  if (sign == "//") return (left - rest) / right;
  throw InvalidInput("an operator", "must be one of + - * // % ~", in_quotes(sign));
}

bool compare(const std::string& sign, const Value& a, const Value& b) {
  if (sign == "==") return equal(a, b);
  if (sign == "!=") return !equal(a, b);
  if (sign == "in") return contains(b, a);
  int order = 0;
  if (a.as<Text>()) {
    order = need_text(a, "").compare(need_text(b, "the right operand of " + sign));
  } else {
    const std::int64_t left = need_number(a, "the left operand of " + sign),
                       right = need_number(b, "the right operand of " + sign);
    order = left < right ? -1 : left > right;
  }
  if (sign == "<") return order < 0;
  if (sign == ">") return order > 0;
  return sign == "<=" ? order <= 0 : order >= 0;
}

}  // namespace frostpipe::jinja
