#include "plan/schedules/schedule_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace frostpipe {
namespace {

[[noreturn]] void fail(std::string_view name, std::string_view what, std::string_view rule, int value) {
  throw InvalidInput(fmt::format("schedule {}: {}", name, what), rule, std::to_string(value));
}

void require_micro_batches(std::string_view name, const ScheduleShape& shape, bool holds, std::string_view rule) {
  if (!holds) fail(name, "number of micro-batches", rule, shape.num_micro_batches);
}

bool belongs_to_backward(ActionKind kind) {
  return kind == ActionKind::backward || kind == ActionKind::input_gradient || kind == ActionKind::weight_gradient;
}

}  // namespace

Schedule empty_schedule(std::string name, const ScheduleShape& shape, int virtual_stages, StageMap map, bool sliced) {
  const int p = shape.pipeline_parallel_size, stages = p * virtual_stages;
  if (p < 1) fail(name, "pipeline-parallel size", "must be >= 1", p);
  if (shape.num_micro_batches < 1) fail(name, "number of micro-batches", "must be >= 1", shape.num_micro_batches);
  if (shape.token_slices > 1 && !sliced)
    fail(name, "token slices", "must be 1 (TeraPipe and Seq1F1B have more)", shape.token_slices);
  if (shape.first_trainable_stage < 0 || shape.first_trainable_stage >= stages)
    fail(name, "first trainable stage",
         fmt::format("must be >= 0 and < {} (the head, and so the last stage, always trains)", stages),
         shape.first_trainable_stage);
  Schedule schedule{.name = std::move(name),
                    .num_micro_batches = shape.num_micro_batches,
                    .first_trainable_stage = shape.first_trainable_stage,
                    .pipeline_rank_of_stage = {},
                    .prologue = {},
                    .body = std::vector<std::vector<Action>>(p),
                    .epilogue = {}};
  for (int stage = 0; stage < stages; ++stage)
    schedule.pipeline_rank_of_stage.push_back(pipeline_rank_of(map, stage, p));
  return schedule;
}

int virtual_stages_of(std::string_view name, const ScheduleShape& shape, int fallback, int least, int most) {
  const int wanted = shape.virtual_stages == 0 ? fallback : shape.virtual_stages;
  if (wanted >= least && wanted <= most) return wanted;
  fail(name, "stages per rank",
       least == most ? fmt::format("must be {}", least) : fmt::format("must be >= {} and <= {}", least, most), wanted);
}

int token_slices_of(std::string_view name, const ScheduleShape& shape) {
  if (shape.token_slices < 0) fail(name, "token slices", "must be >= 1", shape.token_slices);
  return shape.token_slices == 0 ? 4 : shape.token_slices;
}

void require_enough_micro_batches(std::string_view name, const ScheduleShape& shape) {
  const int p = shape.pipeline_parallel_size, m = shape.num_micro_batches;
  if (name == "PipeDream-2BW") require_micro_batches(name, shape, m >= p, "must be >= p");
  if (name == "ZB-H2") require_micro_batches(name, shape, m >= 2 * p - 1, "must be >= 2 p - 1");
  if (name == "DualPipeV") require_micro_batches(name, shape, m >= 2 * p, "must be >= 2 p");
}

void require_rounds(std::string_view name, const ScheduleShape& shape, int virtual_stages) {
  const int m = shape.num_micro_batches, p = std::max(1, shape.pipeline_parallel_size), rounds = std::max(1, m / p);
  require_micro_batches(name, shape, virtual_stages == 1 || m % rounds == 0,
                        fmt::format("must be a multiple of the rounds, m / p rounded down, such as {} or {}",
                                    rounds * p, (rounds + 1) * p));
}

Schedule without_frozen_backwards(Schedule schedule) {
  for (auto* part : {&schedule.prologue, &schedule.body, &schedule.epilogue}) {
    for (auto& list : *part) {
      std::vector<Action> kept;
      kept.reserve(list.size());
      bool after_an_overlapped_one = false;
      for (const Action& action : list) {
        const bool goes = belongs_to_backward(action.kind) && action.stage < schedule.first_trainable_stage;
        if (!goes)
          kept.push_back(action);
        else if (after_an_overlapped_one)
          kept.back().overlaps_next = false;
        after_an_overlapped_one = !goes && action.overlaps_next;
      }
      list = std::move(kept);
    }
  }
  return schedule;
}

}  // namespace frostpipe
