#pragma once
#include <chrono>

#include "base/units.h"

namespace frostpipe {

/// Returns the current time on the steady clock, which all processes of a machine share.
inline Nanoseconds steady_now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

}  // namespace frostpipe
