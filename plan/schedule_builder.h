#pragma once
// Implementation header: what schedule builders share. Include it from .cpp files only.
#include <string>

#include "plan/schedule.h"

namespace frostpipe {

/// An empty schedule with stage s on position s. Throws InvalidInput if no schedule can have this shape.
Schedule one_stage_per_position(std::string name, const ScheduleShape& shape);

inline Action forward(int stage, int micro_batch) {
  return {.kind = ActionKind::forward, .stage = stage, .micro_batch = micro_batch};
}
inline Action backward(int stage, int micro_batch) {
  return {.kind = ActionKind::backward, .stage = stage, .micro_batch = micro_batch};
}

}  // namespace frostpipe
