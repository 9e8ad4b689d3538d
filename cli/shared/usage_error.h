#pragma once
#include <stdexcept>
#include <string_view>

#include "base/error.h"

namespace frostpipe {

/// An error in the options that is found after parsing them. The exit code is 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
  /// Makes a sentence of the same form as InvalidInput.
  UsageError(std::string_view option, std::string_view rule, std::string_view value)
      : std::runtime_error(InvalidInput(option, rule, value).what()) {}
};

}  // namespace frostpipe
