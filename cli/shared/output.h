#pragma once
#include <string>
#include <string_view>

namespace frostpipe {

/// Opens those of standard input, output and error that are closed on the null device: what this process opens next
/// must not get their numbers. Closing them is the user's choice, and means what the null device means.
void open_closed_standard_streams();

/// The text with U+FFFD in place of control characters (but for line ends and tabs) and of what is no UTF-8: a name in
/// a file cannot command the terminal that it is shown on.
std::string printable(std::string_view text);

/// A piece of the result, to stdout, printable. main() checks at the end that all of it could be written.
void print_result(std::string_view text);

/// Something worth knowing that is not the result: "frostpipe: NOTE" on stderr, printable.
void print_note(std::string_view note);

}  // namespace frostpipe
