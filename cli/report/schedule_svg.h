#pragma once
#include <string>

#include "plan/schedule.h"
#include "plan/trace.h"

namespace frostpipe {

/// Returns a self-contained SVG file: a row per rank, and a box per compute action with its micro-batch (and slice), in
/// colours for forwards and backwards, darker for the later stages of a rank. The time axis counts units of `unit_ns`.
std::string schedule_svg(const Schedule& compute, const Trace& trace, Nanoseconds unit_ns);

}  // namespace frostpipe
