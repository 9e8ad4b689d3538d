#pragma once
#include <string>

#include "plan/schedule.h"
#include "plan/trace.h"

namespace frostpipe {

/// A picture that stands alone: a row per rank, a box per compute action with its micro-batch (and slice), forwards and
/// backwards in their colours, darker for the later stages of a rank. `trace` in units of `unit_ns`.
std::string schedule_svg(const Schedule& compute, const Trace& trace, Nanoseconds unit_ns);

}  // namespace frostpipe
