#pragma once
#include <string>

#include "base/units.h"

namespace frostpipe {

/// "; about 40.0 s left", where this share of a job has taken `elapsed`; nothing at its begin and at its end.
std::string time_left(Nanoseconds elapsed, double share);

}  // namespace frostpipe
