#pragma once
#include <string>

#include "executor/data/chats/jinja_value.h"

namespace frostpipe::jinja {

// Jinja's binary operators. All throw InvalidInput for unsupported operands.

/// Computes + - * // % of integers, + of strings and of lists, and ~ (concatenation) of printable values.
Value arithmetic(const std::string& sign, const Value& a, const Value& b);
/// Evaluates == != < > <= >= and in.
bool compare(const std::string& sign, const Value& a, const Value& b);

}  // namespace frostpipe::jinja
