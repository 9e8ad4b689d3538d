#pragma once
#include <string_view>

#include "plan/schedule.h"

namespace frostpipe {

/// Throws InvalidInput, in the sentence of the schedule's builder, where it cannot have this shape. Builds a schedule
/// of few micro-batches at most: `shape` may have a million.
void require_shape(std::string_view schedule, const ScheduleShape& shape);

}  // namespace frostpipe
