#pragma once
#include <optional>
#include <string>

#include "executor/data/chats/jinja_value.h"

namespace frostpipe::jinja {

// Jinja's built-ins, as far as chats without tools need them. All throw InvalidInput that names an unsupported feature
// and lists the supported ones.

/// value | name(arguments)
Value filtered(const std::string& name, const Value& value, const Arguments& arguments);
/// value is name(arguments)
bool passes_test(const std::string& name, const Value& value, const Arguments& arguments);
/// value.name: a member of an object, or one of Python's methods
Value attribute(const Value& value, const std::string& name);
/// value[index]
Value element(const Value& value, const Value& index);
/// value[begin:end:step] with Python's rules
Value slice(const Value& value, std::optional<std::int64_t> begin, std::optional<std::int64_t> end, std::int64_t step);
/// raise_exception, namespace, dict, range, strftime_now; nothing for other names. The clock of strftime_now stands at
/// 26 July 2024, the date in templates of Llama 3, so that the same data have the same tokens on every rank and day.
std::optional<Value> builtin_function(const std::string& name);

}  // namespace frostpipe::jinja
