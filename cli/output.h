#pragma once
#include <string_view>

namespace frostpipe {

/// A piece of the result, to stdout. main() checks at the end that all of it could be written.
void print_result(std::string_view text);

/// Something worth knowing that is not the result: "frostpipe: NOTE" on stderr.
void print_note(std::string_view note);

}  // namespace frostpipe
