#pragma once
#include <string_view>

#include "plan/schedule.h"

namespace frostpipe {

/// Throws InvalidInput, with the message of the schedule's builder, if the schedule cannot have this shape. It is cheap
/// even for a million micro-batches, since it builds a schedule of only a few.
void require_shape(std::string_view schedule, const ScheduleShape& shape);

}  // namespace frostpipe
