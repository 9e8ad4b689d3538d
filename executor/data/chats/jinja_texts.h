#pragma once
#include <string>
#include <vector>

#include "executor/data/chats/jinja_value.h"

namespace frostpipe::jinja {

// Operations of texts that are methods of Python's str, and filters of Jinja too. All throw InvalidInput for arguments
// that are not supported.

/// Returns a text of ASCII in upper case (`name` is "upper") or lower case ("lower").
Text with_case(Text text, const std::string& name);
/// Removes the characters of `wanted` from the left end, the right end or both; white space as Python defines it if
/// `wanted` is null or none.
Text stripped(const Text& text, const Value* wanted, bool left, bool right);
/// Evaluates the filter or the method `replace`. `names` are those of its parameters: the old text, the new one, and
/// how many occurrences are replaced from the left (all if it is negative, none or not given).
Text replaced(const Text& text, const Arguments& arguments, const std::vector<std::string>& names);

/// Returns whether Python's str has a method of that name.
bool is_method_of_texts(const std::string& name);
/// Returns `text.name(arguments)`; for an unsupported name the error lists the supported ones.
Value method_of_text(const Text& text, const std::string& name, const Arguments& arguments);

}  // namespace frostpipe::jinja
