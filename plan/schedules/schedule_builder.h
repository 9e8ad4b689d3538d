#pragma once
// Implementation header: what schedule builders share. Include it from .cpp files only.
#include <string>

#include "plan/schedule.h"

namespace frostpipe {

/// An empty schedule with `virtual_stages` stages per pipeline rank. Throws InvalidInput if no schedule can have this
/// shape. Only with `sliced` may the shape ask for token slices.
Schedule empty_schedule(std::string name, const ScheduleShape& shape, int virtual_stages, StageMap map,
                        bool sliced = false);

/// shape.virtual_stages, or `fallback` where it is 0. Throws InvalidInput that names the rule unless it is within
/// [least, most].
int virtual_stages_of(std::string_view name, const ScheduleShape& shape, int fallback, int least, int most);

/// shape.token_slices, or 4 where it is 0. Throws InvalidInput if it is below 1.
int token_slices_of(std::string_view name, const ScheduleShape& shape);

/// The rules of PipeDream-2BW, ZB-H2 and DualPipeV, which need as many for p ranks; others take any number.
void require_enough_micro_batches(std::string_view name, const ScheduleShape& shape);

/// The rule of the interleaved schedules: with several stages per rank, m must be a multiple of m / p rounded down.
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
