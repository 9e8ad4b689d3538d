#pragma once
#include <string>

#include "executor/data/chats/jinja_value.h"

namespace frostpipe::jinja {

// What stands between two values, as Jinja has it. All throw InvalidInput for values that it is not for.

/// + - * // % of whole numbers, + of texts and of lists, ~ of what can be written.
Value arithmetic(const std::string& sign, const Value& a, const Value& b);
/// == != < > <= >= in
bool compare(const std::string& sign, const Value& a, const Value& b);

}  // namespace frostpipe::jinja
