// This file implements the functions of plan.h that concern a phase's schedule.
#include "plan/plan.h"
#include "plan/reroute.h"
#include "plan/schedule_rows.h"
#include "plan/stages.h"
#include "plan/token_slices.h"

namespace frostpipe {

ScheduleShape shape_of(const Phase& phase) {
  return {.pipeline_parallel_size = phase.layout.pipeline_parallel_size,
          .num_micro_batches = phase.num_micro_batches,
          .first_trainable_stage = first_trainable_stage(phase),
          .virtual_stages = phase.virtual_stages,
          .token_slices = num_slices(phase)};
}

int weight_delay(const Phase& phase) { return schedule_traits(phase.schedule).weight_delay; }

bool have_same_pipeline(const Phase& one, const Phase& other) {
  return one.partition == other.partition && one.virtual_stages == other.virtual_stages &&
         one.num_micro_batches == other.num_micro_batches && one.schedule == other.schedule &&
         one.schedule_rows == other.schedule_rows && one.token_slices == other.token_slices;
}

Schedule schedule_of(const Phase& phase) {
  Schedule schedule = phase.schedule_rows.empty() ? build_schedule(phase.schedule, shape_of(phase))
                                                  : compute_of_rows(phase, first_trainable_stage(phase));
  for (std::vector<Action>& list : schedule.body)
    for (Action& action : list) action.overlaps_next = false;  // overlapped pairs run one after the other
  if (phase.cache.on) {
    schedule.reads_cache = true;
    schedule.cache_write_stage = stage_of_layer(phase.partition, phase.first_trainable_layer - 1);
  }
  if (!phase.layout.vacant.empty()) schedule = written_out(schedule, phase.layout);
  return lower(schedule);
}

}  // namespace frostpipe
