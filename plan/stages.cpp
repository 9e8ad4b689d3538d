#include "plan/stages.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "plan/schedule_rows.h"
#include "plan/token_slices.h"

namespace frostpipe {

namespace {

/// Requires a phase without schedule rows.
StageMap stage_map_of(const Phase& phase) {
  return phase.virtual_stages == 1 ? StageMap::loop : schedule_traits(phase.schedule).stage_map;
}

}  // namespace

int num_stages(const Phase& phase) {
  return phase.schedule_rows.empty() ? phase.layout.pipeline_parallel_size * phase.virtual_stages
                                     : static_cast<int>(phase.pipeline_rank_of_stage.size());
}

int pipeline_rank_of(const Phase& phase, int stage) {
  FROSTPIPE_CHECK(stage >= 0 && stage < num_stages(phase), "stages are those of the phase");
  if (!phase.schedule_rows.empty()) return phase.pipeline_rank_of_stage[stage];
  return pipeline_rank_of(stage_map_of(phase), stage, phase.layout.pipeline_parallel_size);
}

std::vector<int> pipeline_ranks_of_stages(const Phase& phase) {
  if (!phase.schedule_rows.empty()) return phase.pipeline_rank_of_stage;
  const StageMap map = stage_map_of(phase);
  std::vector<int> pipeline_ranks;
  for (int stage = 0; stage < num_stages(phase); ++stage)
    pipeline_ranks.push_back(pipeline_rank_of(map, stage, phase.layout.pipeline_parallel_size));
  return pipeline_ranks;
}

std::vector<int> stages_on(const Phase& phase, int pipeline_rank) {
  FROSTPIPE_CHECK(pipeline_rank >= 0 && pipeline_rank < phase.layout.pipeline_parallel_size,
                  "pipeline ranks are those of the layout");
  const std::vector<int> pipeline_ranks = pipeline_ranks_of_stages(phase);
  std::vector<int> stages;
  for (int stage = 0; stage < num_stages(phase); ++stage)
    if (pipeline_ranks[stage] == pipeline_rank) stages.push_back(stage);
  return stages;
}

std::vector<std::vector<int>> stages_on_each(const Phase& phase) {
  const std::vector<int> pipeline_ranks = pipeline_ranks_of_stages(phase);
  std::vector<std::vector<int>> stages(phase.layout.pipeline_parallel_size);
  for (int stage = 0; stage < num_stages(phase); ++stage) stages[pipeline_ranks[stage]].push_back(stage);
  return stages;
}

std::vector<LayerRange> layers_on(const Phase& phase, int pipeline_rank) {
  std::vector<LayerRange> layers;
  for (const int stage : stages_on(phase, pipeline_rank)) layers.push_back(phase.partition.at(stage));
  return layers;
}

int rank_of_stage(const Phase& phase, int stage, int replica) {
  return rank_of(phase.layout, pipeline_rank_of(phase, stage), replica);
}

std::vector<int> replicas_of_stage(const Phase& phase, int stage) {
  return replicas_of(phase.layout, pipeline_rank_of(phase, stage));
}

std::vector<int> replicas_of_layer(const Phase& phase, int layer) {
  return replicas_of_stage(phase, stage_of_layer(phase.partition, layer));
}

int first_trainable_stage(const Phase& phase) {
  return first_trainable_stage(phase.partition, phase.first_trainable_layer);
}

std::vector<bool> trains(const Phase& phase) {
  std::vector<bool> trains(phase.layout.pipeline_parallel_size, false);
  const std::vector<int> pipeline_ranks = pipeline_ranks_of_stages(phase);
  for (int stage = first_trainable_stage(phase); stage < num_stages(phase); ++stage)
    trains[pipeline_ranks[stage]] = true;
  return trains;
}

std::vector<bool> are_first_to_train(const Phase& phase) {
  std::vector<bool> are_first(num_stages(phase), false);
  const int first = first_trainable_stage(phase);
  for (const std::vector<int>& stages : stages_on_each(phase))
    if (const auto trains = std::ranges::lower_bound(stages, first); trains != stages.end()) are_first[*trains] = true;
  return are_first;
}

bool has_one_stage_per_rank(const Phase& phase) { return phase.virtual_stages == 1 && phase.schedule_rows.empty(); }

bool splits_backward(const Phase& phase) {
  if (phase.schedule_rows.empty()) return splits_backward(phase.schedule);
  return splits_backward(compute_of_rows(phase, 0));
}

bool hands_on_at_once(const Phase& phase, int stage) {
  if (stage + 1 == num_stages(phase)) return false;
  const int pipeline_rank = pipeline_rank_of(phase, stage);
  if (pipeline_rank_of(phase, stage + 1) != pipeline_rank) return false;
  if (phase.schedule_rows.empty())
    return phase.num_micro_batches == 1 || !schedule_traits(phase.schedule).starts_all_forwards;
  int waiting = 0, most = 0;
  const Schedule schedule = compute_of_rows(phase, 0);
  for (const Action& action : schedule.body[pipeline_rank]) {
    if (action.kind != ActionKind::forward) continue;
    waiting += (action.stage == stage) - (action.stage == stage + 1);
    most = std::max(most, waiting);
  }
  return most == 1;
}

std::vector<bool> stages_that_hand_on_at_once(const Phase& phase) {
  std::vector<bool> hand_on(num_stages(phase), false);
  const std::vector<int> pipeline_ranks = pipeline_ranks_of_stages(phase);
  for (int stage = 0; stage + 1 < num_stages(phase); ++stage)
    hand_on[stage] = pipeline_ranks[stage] == pipeline_ranks[stage + 1] && hands_on_at_once(phase, stage);
  return hand_on;
}

std::string schedule_text(const Phase& phase) {
  if (!phase.token_slices.empty())
    return fmt::format("{}, {} token slice{}", phase.schedule, num_slices(phase), num_slices(phase) == 1 ? "" : "s");
  if (phase.virtual_stages == 1) return phase.schedule;
  const bool all_have_as_many = num_stages(phase) == phase.layout.pipeline_parallel_size * phase.virtual_stages;
  return fmt::format("{}, {}{} stages per rank", phase.schedule, all_have_as_many ? "" : "up to ",
                     phase.virtual_stages);
}

}  // namespace frostpipe
