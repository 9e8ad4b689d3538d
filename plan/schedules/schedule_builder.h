#pragma once
// Implementation header: helpers that schedule builders share. Include it from .cpp files only.
#include <string>

#include "plan/schedule.h"

namespace frostpipe {

/// Returns an empty schedule with `virtual_stages` stages per pipeline rank. Throws InvalidInput if no schedule can
/// have this shape, or if it has several token slices and `sliced` is false.
Schedule empty_schedule(std::string name, const ScheduleShape& shape, int virtual_stages, StageMap map,
                        bool sliced = false);

/// Returns shape.virtual_stages, or `fallback` if that is 0. Throws InvalidInput that names the rule unless the result
/// is within [least, most].
int virtual_stages_of(std::string_view name, const ScheduleShape& shape, int fallback, int least, int most);

/// Returns shape.token_slices, or 4 if that is 0. Throws InvalidInput if it is below 1.
int token_slices_of(std::string_view name, const ScheduleShape& shape);

/// Throws InvalidInput if PipeDream-2BW, ZB-H2 or DualPipeV has fewer micro-batches than it needs on p ranks. Other
/// schedules take any number.
void require_enough_micro_batches(std::string_view name, const ScheduleShape& shape);

/// Throws InvalidInput unless m is a multiple of the rounds (m / p, rounded down), as interleaved schedules with
/// several stages per rank require.
void require_rounds(std::string_view name, const ScheduleShape& shape, int virtual_stages);

inline Action forward(int stage, int micro_batch) {
  return {.kind = ActionKind::forward, .stage = stage, .micro_batch = micro_batch};
}
inline Action backward(int stage, int micro_batch) {
  return {.kind = ActionKind::backward, .stage = stage, .micro_batch = micro_batch};
}
inline Action input_gradient(int stage, int micro_batch) {
  return {.kind = ActionKind::input_gradient, .stage = stage, .micro_batch = micro_batch};
}
inline Action weight_gradient(int stage, int micro_batch) {
  return {.kind = ActionKind::weight_gradient, .stage = stage, .micro_batch = micro_batch};
}

}  // namespace frostpipe
