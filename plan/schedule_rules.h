#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "plan/schedule.h"

namespace frostpipe {

/// Schedules that plans may name: those that run with one stage per rank, and those of several stages per rank.
std::vector<std::string> plan_schedule_names();
/// Those of them that may have several stages per rank.
std::vector<std::string> looped_schedule_names();
bool is_looped(std::string_view schedule);

/// Throws InvalidInput, in the sentence of the schedule's builder, where it cannot have this shape. Builds a schedule
/// of few micro-batches at most: `shape` may have a million.
void require_shape(std::string_view schedule, const ScheduleShape& shape);

}  // namespace frostpipe
