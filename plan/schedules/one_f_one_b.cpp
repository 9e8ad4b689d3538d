#include <algorithm>

#include "plan/schedules/schedule_builder.h"

namespace frostpipe {

Schedule one_f_one_b(const ScheduleShape& shape) {
  Schedule schedule = empty_schedule("1F1B", shape, virtual_stages_of("1F1B", shape, 1, 1, 1), StageMap::loop);
  const int p = shape.pipeline_parallel_size, m = shape.num_micro_batches;
  for (int stage = 0; stage < p; ++stage) {
    auto& actions = schedule.body[stage];
    actions.reserve(2 * m);
    const bool trains = stage >= shape.first_trainable_stage;
    const int warm_up = std::min(p - 1 - stage, m);
    for (int i = 0; i < m; ++i) {
      actions.push_back(forward(stage, i));
      if (trains && i >= warm_up) actions.push_back(backward(stage, i - warm_up));
    }
    if (!trains) continue;
    for (int i = m - warm_up; i < m; ++i) actions.push_back(backward(stage, i));
  }
  return schedule;
}

}  // namespace frostpipe
