#pragma once
#include <chrono>

#include "base/units.h"

namespace frostpipe {

/// Now, on the machine's steady clock: all processes of a machine read the same one.
inline Nanoseconds steady_now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

}  // namespace frostpipe
