#pragma once
#include <string_view>
#include <vector>

namespace frostpipe {

/// Returns the parts between the separators, unchanged: one more than there are separators.
std::vector<std::string_view> split(std::string_view text, char separator);

/// Returns the lines without their ends (LF or CRLF). Text after the last line end is a line unless it is empty.
std::vector<std::string_view> lines_of(std::string_view text);

/// Removes blanks and tabs at both ends, and carriage returns at the end.
std::string_view trimmed(std::string_view text);

}  // namespace frostpipe
