#include "plan/schedule_rules.h"

#include <algorithm>

#include "plan/schedules/schedule_builder.h"

namespace frostpipe {

std::vector<std::string> looped_schedule_names() { return {"Interleaved1F1B", "LoopedBFS"}; }

bool is_looped(std::string_view schedule) {
  const std::vector<std::string> names = looped_schedule_names();
  return std::find(names.begin(), names.end(), schedule) != names.end();
}

std::vector<std::string> plan_schedule_names() {
  std::vector<std::string> names = runnable_schedule_names();
  for (std::string& name : looped_schedule_names()) names.push_back(std::move(name));
  return names;
}

void require_shape(std::string_view schedule, const ScheduleShape& shape) {
  const int p = shape.pipeline_parallel_size;
  ScheduleShape small = shape;
  if (schedule == "Interleaved1F1B") {
    require_rounds(schedule, shape, shape.virtual_stages);
    small.num_micro_batches = std::min(shape.num_micro_batches, p);
  } else {
    small.num_micro_batches = std::min(shape.num_micro_batches, 2 * p);  // no other rule asks for more
  }
  build_schedule(schedule, small);
}

}  // namespace frostpipe
