#pragma once
#include <optional>
#include <string>

#include "executor/data/chats/jinja_value.h"

namespace frostpipe::jinja {

// What Jinja has of its own, as far as chats without tools need it. All throw InvalidInput that names what is not known
// here, and what is.

/// value | name(arguments)
Value filtered(const std::string& name, const Value& value, const Arguments& arguments);
/// value is name(arguments)
bool passes_test(const std::string& name, const Value& value, const Arguments& arguments);
/// value.name: a member of an object, or a method as Python has it.
Value attribute(const Value& value, const std::string& name);
/// value[index]
Value element(const Value& value, const Value& index);
/// value[begin:end:step], as Python has it.
Value slice(const Value& value, std::optional<std::int64_t> begin, std::optional<std::int64_t> end, std::int64_t step);
/// raise_exception, namespace, range.
std::optional<Value> builtin_function(const std::string& name);

}  // namespace frostpipe::jinja
