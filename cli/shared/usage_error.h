#pragma once
#include <stdexcept>

namespace frostpipe {

/// Options that contradict each other, found after parsing; exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace frostpipe
