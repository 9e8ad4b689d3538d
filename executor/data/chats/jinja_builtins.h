#pragma once
#include <optional>
#include <string>

#include "executor/data/chats/jinja_value.h"

namespace frostpipe::jinja {

// Jinja's built-ins, as far as chats without tools need them. All throw InvalidInput: for an unsupported name it lists
// the supported ones, for a value of the wrong kind it says which kind is needed.

/// Returns `value | name(arguments)`.
Value filtered(const std::string& name, const Value& value, const Arguments& arguments);
/// Returns whether `value is name(arguments)`.
bool passes_test(const std::string& name, const Value& value, const Arguments& arguments);
/// Returns `value.name`: a member of an object, Undefined if it has none of that name; or one of Python's methods, as a
/// function.
Value attribute(const Value& value, const std::string& name);
/// Returns `value[index]`; Undefined if there is no such element.
Value element(const Value& value, const Value& index);
/// Returns `value[begin:end:step]` by Python's rules.
Value slice(const Value& value, std::optional<std::int64_t> begin, std::optional<std::int64_t> end, std::int64_t step);
/// Returns the function raise_exception, namespace, dict, range or strftime_now; nothing for other names. strftime_now
/// always formats 26 July 2024, the date in templates of Llama 3, so that the same data have the same tokens on every
/// rank and day.
std::optional<Value> builtin_function(const std::string& name);

}  // namespace frostpipe::jinja
