#include "plan/schedule_rules.h"

#include <algorithm>

#include "plan/schedules/schedule_builder.h"

namespace frostpipe {

void require_shape(std::string_view schedule, const ScheduleShape& shape) {
  const int p = shape.pipeline_parallel_size;
  ScheduleShape small = shape;
  if (schedule == "Interleaved1F1B" || schedule == "InterleavedZeroBubble") {
    require_rounds(schedule, shape, shape.virtual_stages);
    small.num_micro_batches = std::min(shape.num_micro_batches, p);
  } else {
    small.num_micro_batches = std::min(shape.num_micro_batches, 2 * p);  // no other rule asks for more
  }
  build_schedule(schedule, small);
}

}  // namespace frostpipe
