#include "plan/schedule.h"

#include <algorithm>

namespace frostpipe {

bool has_messages(const Schedule& schedule) {
  for (const auto* part : {&schedule.prologue, &schedule.body, &schedule.epilogue}) {
    for (const auto& list : *part) {
      if (std::any_of(list.begin(), list.end(),
                      [](const Action& action) { return is_send(action.kind) || is_receive(action.kind); }))
        return true;
    }
  }
  return false;
}

Schedule compute_only(const Schedule& schedule) {
  Schedule compute = schedule;
  for (auto* part : {&compute.prologue, &compute.body, &compute.epilogue}) {
    for (auto& list : *part) std::erase_if(list, [](const Action& action) { return !is_compute(action.kind); });
  }
  return compute;
}

int num_stages(const Schedule& schedule) { return static_cast<int>(schedule.pipeline_rank_of_stage.size()); }

int num_pipeline_ranks(const Schedule& schedule) { return static_cast<int>(schedule.body.size()); }

int pipeline_rank_of(const Schedule& schedule, int stage, int micro_batch) {
  if (schedule.pipeline_rank_of_micro_batch.empty()) return schedule.pipeline_rank_of_stage[stage];
  return schedule.pipeline_rank_of_micro_batch[stage].at(micro_batch);
}

bool lives_on(const Schedule& schedule, int stage, int pipeline_rank) {
  if (schedule.pipeline_rank_of_micro_batch.empty()) return schedule.pipeline_rank_of_stage[stage] == pipeline_rank;
  const std::vector<int>& runs_on = schedule.pipeline_rank_of_micro_batch[stage];
  return std::ranges::find(runs_on, pipeline_rank) != runs_on.end();
}

int pipeline_rank_of(StageMap map, int stage, int pipeline_parallel_size) {
  const int along = stage % pipeline_parallel_size;
  const bool upwards = map == StageMap::v && stage / pipeline_parallel_size % 2 == 1;
  return upwards ? pipeline_parallel_size - 1 - along : along;
}

bool splits_backward(const Schedule& schedule) {
  return std::ranges::any_of(schedule.body, [](const std::vector<Action>& list) {
    return std::ranges::any_of(list, [](const Action& action) { return action.kind == ActionKind::weight_gradient; });
  });
}

}  // namespace frostpipe
