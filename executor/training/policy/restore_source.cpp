#include "executor/training/policy/restore_source.h"

#include <algorithm>

#include "profiles/files.h"

namespace frostpipe {
namespace {

const Phase& phase_of(const Checkpoint& snapshot) {
  return snapshot.plan.phases[phase_at(snapshot.plan, snapshot.step)];
}

/// Frozen layers whose moments nobody but the survivors has.
std::vector<int> layers_with_needed_moments(const Checkpoint& told, const std::optional<Checkpoint>& stored,
                                            int num_moments) {
  std::vector<int> layers;
  if (num_moments == 0) return layers;
  const int stored_frozen = stored ? phase_of(*stored).first_trainable_layer : 0;
  const int first = std::max(told.plan.phases.front().first_trainable_layer, stored_frozen);
  for (int layer = first; layer < phase_of(told).first_trainable_layer; ++layer) layers.push_back(layer);
  return layers;
}

}  // namespace

std::optional<int> rank_that_knows(const std::vector<RankInventory>& inventories) {
  const auto found = std::find_if(inventories.begin(), inventories.end(), knows_the_run);
  if (found == inventories.end()) return std::nullopt;
  return static_cast<int>(found - inventories.begin());
}

RestoreSource choose_restore_source(const std::vector<RankInventory>& inventories,
                                    const std::optional<Checkpoint>& told, const std::optional<Checkpoint>& stored,
                                    int num_layers, int num_moments) {
  const bool is_in_memory = told && common_step(inventories, num_layers, phase_of(*told).first_trainable_layer,
                                                layers_with_needed_moments(*told, stored, num_moments));
  int furthest = 0;
  for (const RankInventory& inventory : inventories) {
    if (!inventory.trainable.empty()) furthest = std::max(furthest, inventory.step);
  }
  const int step = is_in_memory ? told->step : stored ? stored->step : 0;
  return {.kind = is_in_memory ? RestoreSource::Kind::survivors
                  : stored     ? RestoreSource::Kind::checkpoint
                               : RestoreSource::Kind::beginning,
          .lost_steps = std::max(0, furthest - step)};
}

std::string to_string(const RestoreSource& source, const std::optional<Checkpoint>& stored) {
  switch (source.kind) {
    case RestoreSource::Kind::survivors:
      return "the survivors' memory";
    case RestoreSource::Kind::checkpoint:
      return "checkpoint " + stored->folder.filename().string();
    default:
      return "the beginning";
  }
}

std::vector<Phase> phases_after(const Checkpoint& snapshot, const TrainOptions& options, int world_size) {
  const std::vector<Recovery>& recoveries = snapshot.run.recoveries;
  const bool had_fewer = !recoveries.empty() && recoveries.back().world_size < world_size;
  const bool same = !had_fewer && snapshot.plan_fingerprint == fingerprint(to_json(options.plan)) &&
                    snapshot.freeze_rule == to_string(options.freeze.rule);
  if (same || options.freeze.rule == FreezePolicy::Rule::plan) {
    const TrainingPlan& plan = same ? snapshot.plan : options.plan;
    return {plan.phases.begin() + phase_at(plan, snapshot.step), plan.phases.end()};
  }
  Phase phase = options.plan.phases.front();
  phase.first_trainable_layer = phase_of(snapshot).first_trainable_layer;
  return {phase};
}

}  // namespace frostpipe
