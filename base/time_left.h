#pragma once
#include <string>

#include "base/units.h"

namespace frostpipe {

/// Returns "; about 40.0 s left" for a job of which the fraction `share` took `elapsed`, and "" for a fraction of 0 or
/// 1.
std::string time_left(Nanoseconds elapsed, double share);

}  // namespace frostpipe
