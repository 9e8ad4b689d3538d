#include "plan/schedule_builder.h"

#include <fmt/format.h>

#include <numeric>

#include "profiles/error.h"

namespace frostpipe {

Schedule one_stage_per_position(std::string name, const ScheduleShape& shape) {
  const auto fail = [&](std::string_view what, std::string_view rule, int value) {
    throw InvalidInput(fmt::format("schedule {}: {}", name, what), rule, std::to_string(value));
  };
  if (shape.pipeline_parallel_size < 1) fail("pipeline-parallel size", "must be >= 1", shape.pipeline_parallel_size);
  if (shape.num_micro_batches < 1) fail("number of micro-batches", "must be >= 1", shape.num_micro_batches);
  if (shape.first_trainable_stage < 0 || shape.first_trainable_stage >= shape.pipeline_parallel_size)
    fail("first trainable stage",
         fmt::format("must be >= 0 and < {} (the head, and so the last stage, always trains)",
                     shape.pipeline_parallel_size),
         shape.first_trainable_stage);
  Schedule schedule{.name = std::move(name),
                    .num_micro_batches = shape.num_micro_batches,
                    .first_trainable_stage = shape.first_trainable_stage,
                    .position_of_stage = std::vector<int>(shape.pipeline_parallel_size),
                    .prologue = {},
                    .body = std::vector<std::vector<Action>>(shape.pipeline_parallel_size),
                    .epilogue = {}};
  std::iota(schedule.position_of_stage.begin(), schedule.position_of_stage.end(), 0);
  return schedule;
}

}  // namespace frostpipe
