#pragma once
#include <cmath>

#include "base/units.h"

namespace frostpipe {

/// Rounds to the nearest nanosecond.
inline Nanoseconds nanoseconds_of(double seconds) { return static_cast<Nanoseconds>(std::llround(seconds * 1e9)); }

}  // namespace frostpipe
