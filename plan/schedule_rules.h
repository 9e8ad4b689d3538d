#pragma once
#include <string_view>

#include "plan/schedule.h"

namespace frostpipe {

/// Throws InvalidInput, with the message of the schedule's builder, if the schedule cannot have this shape. `schedule`
/// is spelled as in schedule_names(). This is cheap even for a million micro-batches, since it builds a schedule of at
/// most 2 p of them, on a single rank where nothing is frozen.
void require_shape(std::string_view schedule, const ScheduleShape& shape);

}  // namespace frostpipe
