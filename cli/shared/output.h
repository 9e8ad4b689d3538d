#pragma once
#include <string>
#include <string_view>

namespace frostpipe {

/// Opens standard input, output and error on the null device if the user has closed them, so that no file which this
/// process opens gets their numbers.
void open_closed_standard_streams();

/// Replaces control characters (except line ends and tabs) and invalid UTF-8 by U+FFFD, so that a name in a file cannot
/// command the terminal that shows it.
std::string printable(std::string_view text);

/// Prints a piece of the result to stdout, as printable(). run_program() checks at the end that all of it was written.
void print_result(std::string_view text);

/// Prints a note that is not part of the result to stderr, as printable(): "frostpipe: NOTE".
void print_note(std::string_view note);

}  // namespace frostpipe
