#pragma once
#include <string_view>
#include <vector>

namespace frostpipe {

/// What stands between the separators, as it is; one more than there are separators.
std::vector<std::string_view> split(std::string_view text, char separator);

/// Lines without their ends, LF or CRLF; what follows the last end is a line unless it is empty.
std::vector<std::string_view> lines_of(std::string_view text);

/// Without blanks and tabs at both ends, and without carriage returns at the end.
std::string_view trimmed(std::string_view text);

}  // namespace frostpipe
