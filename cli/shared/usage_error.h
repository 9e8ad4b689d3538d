#pragma once
#include <stdexcept>
#include <string_view>

#include "base/error.h"

namespace frostpipe {

/// Options that are wrong or contradict each other, found after parsing; exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
  /// Reads as InvalidInput does.
  UsageError(std::string_view option, std::string_view rule, std::string_view value)
      : std::runtime_error(InvalidInput(option, rule, value).what()) {}
};

}  // namespace frostpipe
