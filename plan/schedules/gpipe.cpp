#include "plan/schedules/schedule_builder.h"

namespace frostpipe {

Schedule gpipe(const ScheduleShape& shape) {
  Schedule schedule = empty_schedule("GPipe", shape, virtual_stages_of("GPipe", shape, 1, 1, 1), StageMap::loop);
  for (int stage = 0; stage < shape.pipeline_parallel_size; ++stage) {
    auto& actions = schedule.body[stage];
    actions.reserve(2 * shape.num_micro_batches);
    for (int i = 0; i < shape.num_micro_batches; ++i) actions.push_back(forward(stage, i));
    if (stage < shape.first_trainable_stage) continue;
    for (int i = 0; i < shape.num_micro_batches; ++i) actions.push_back(backward(stage, i));
  }
  return schedule;
}

}  // namespace frostpipe
