#pragma once
#include <stdexcept>
#include <string_view>

namespace frostpipe {

/// Bad input: a file or an option breaks a rule. The CLI prints the message and exits with 1. Long parts of the message
/// are cut, since files have keys and values of any length.
struct InvalidInput : std::runtime_error {
  explicit InvalidInput(std::string_view message);
  /// Makes the message "PLACE: RULE, is VALUE": "profile.json: layers[3].forward_ns: must be >= 0, is -5".
  InvalidInput(std::string_view place, std::string_view rule, std::string_view value);
};

/// Returns what `call` returns. Puts "PLACE: " in front of the message if it throws InvalidInput.
template <class Call>
auto with_place(const std::string& place, Call call) {
  try {
    return call();
  } catch (const InvalidInput& error) {
    throw InvalidInput(place + ": " + error.what());
  }
}

/// A device, link, rank or disk failed while running. The message names the rank and the action where they are known;
/// the CLI exits with 1.
struct RuntimeFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The peer of a connection is gone. This is the consequence of another rank's failure, not its cause.
struct PeerLost : RuntimeFailure {
  using RuntimeFailure::RuntimeFailure;
};

/// A bug of frostpipe. FROSTPIPE_CHECK throws it if its condition is false, also in release builds. No user input may
/// make a condition false.
struct InternalError : std::logic_error {
  using std::logic_error::logic_error;
};

[[noreturn]] void check_failed(const char* condition, const char* why, const char* file, int line);

}  // namespace frostpipe

#define FROSTPIPE_CHECK(condition, why)                                               \
  do {                                                                                \
    if (!(condition)) ::frostpipe::check_failed(#condition, why, __FILE__, __LINE__); \
  } while (false)
