#include "plan/schedule_rules.h"

#include <algorithm>

#include "plan/schedules/schedule_builder.h"

namespace frostpipe {

void require_shape(std::string_view schedule, const ScheduleShape& shape) {
  // Build with p = 1, unless stages are frozen, to check the rules that do not depend on p. The others are checked
  // below.
  ScheduleShape small = shape;
  if (shape.first_trainable_stage == 0) small.pipeline_parallel_size = std::min(shape.pipeline_parallel_size, 1);
  small.num_micro_batches = std::min(shape.num_micro_batches, 2 * small.pipeline_parallel_size);
  build_schedule(schedule, small);
  require_enough_micro_batches(schedule, shape);
  if (schedule == "Interleaved1F1B" || schedule == "InterleavedZeroBubble")
    require_rounds(schedule, shape, shape.virtual_stages);
}

}  // namespace frostpipe
