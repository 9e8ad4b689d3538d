#include "executor/training/policy/restore_source.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "base/files.h"

namespace frostpipe {
namespace {

const Phase& phase_of(const Checkpoint& snapshot) {
  return snapshot.plan.phases[phase_at(snapshot.plan, snapshot.step)];
}

/// Returns the frozen layers whose moments only survivors can have: those that the run has frozen since its start and
/// that are not frozen in the stored checkpoint.
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

std::vector<int> ranks_that_can_describe_run(const std::vector<RankInventory>& inventories) {
  std::map<std::pair<int, int>, int, std::greater<>> first_of;  // by step and phase
  for (int rank = 0; rank < static_cast<int>(inventories.size()); ++rank)
    if (const RankInventory& inventory = inventories[rank]; can_describe_run(inventory))
      first_of.try_emplace({inventory.step, inventory.phase_from}, rank);
  std::vector<int> ranks;
  for (const auto& [at, rank] : first_of) ranks.push_back(rank);
  return ranks;
}

SurvivorMemory memory_of(const std::vector<RankInventory>& inventories, int reference, Checkpoint told) {
  const int first_trainable_layer = phase_of(told).first_trainable_layer;
  return {.told = std::move(told),
          .inventories = consistent_with(inventories, inventories[reference], first_trainable_layer)};
}

const SurvivorMemory* whole_memory(const std::vector<SurvivorMemory>& memories, const std::optional<Checkpoint>& stored,
                                   int num_layers, int num_moments) {
  const auto whole = std::ranges::find_if(memories, [&](const SurvivorMemory& memory) {
    return hold_all_layers(memory.inventories, num_layers,
                           layers_with_needed_moments(memory.told, stored, num_moments));
  });
  return whole == memories.end() ? nullptr : &*whole;
}

RestoreSource choose_restore_source(const std::vector<RankInventory>& inventories, const SurvivorMemory* whole,
                                    const std::optional<Checkpoint>& stored) {
  int furthest = 0;
  for (const RankInventory& inventory : inventories) {
    if (!inventory.trainable.empty()) furthest = std::max(furthest, inventory.step);
  }
  const int step = whole ? whole->told.step : stored ? stored->step : 0;
  return {.kind = whole    ? RestoreSource::Kind::survivors
                  : stored ? RestoreSource::Kind::checkpoint
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
