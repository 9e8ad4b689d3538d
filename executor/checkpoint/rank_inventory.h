#pragma once
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "plan/reconfiguration.h"

namespace frostpipe {

/// A frozen layer whose moments, or a part of them, a rank has offloaded.
struct OffloadedLayer {
  int layer = 0;
  TensorSlice slice = {};
  bool operator==(const OffloadedLayer&) const = default;
};

/// The state that a process brings into a new rendezvous round.
struct RankInventory {
  int step = -1;               // optimizer steps that its trainable layers have done; -1 = its layers are unusable
  int phase_from = 0;          // from_step of its last phase
  int num_recorded = 0;        // number of steps whose figures it has recorded
  std::vector<int> layers;     // layers that it holds
  std::vector<int> trainable;  // those of `layers` that train
  TensorSlice slice = {};      // its part of each layer
  std::vector<OffloadedLayer> offloaded;
  std::optional<double> gradient_norm = {};  // of the last step
  bool lacks_norm = false;                   // it also has the gradients of the next step, but not their norm
  bool operator==(const RankInventory&) const = default;
};

/// True if the process has trainable layers and the figures of every step that they have done. It can then describe the
/// run to the other ranks.
bool can_describe_run(const RankInventory& inventory);

/// Returns the gradient norm that the rank of `own` lacks, from a rank that has finished that step and can describe the
/// run; nothing if `own` lacks none or no rank has it. The ranks that train all-reduce the norm when all have their
/// gradients; if a rank is lost meanwhile, some ranks may have the norm and others not.
std::optional<double> norm_of_next_step(const std::vector<RankInventory>& inventories, const RankInventory& own);

/// Returns the inventories as they are after the ranks without the norm have finished that step.
std::vector<RankInventory> with_completed_steps(const std::vector<RankInventory>& inventories);

std::string to_text(const RankInventory& inventory);
RankInventory inventory_from_text(const std::string& text);

/// Returns the parts of `inventories` (by rank) that match the step and phase of `reference`, which trains the layers
/// from `first_trainable_layer` on: trainable layers of ranks at the same step and phase, and layers that are frozen in
/// both phases. From a rank that has not done the last update or has not begun the phase, only the latter remain.
std::vector<RankInventory> consistent_with(const std::vector<RankInventory>& inventories,
                                           const RankInventory& reference, int first_trainable_layer);

/// True if the ranks together hold all parts of every layer and, for the layers in `needs_moments`, all parts of the
/// moments, either offloaded or with a layer that still trains.
bool hold_all_layers(const std::vector<RankInventory>& inventories, int num_layers,
                     const std::vector<int>& needs_moments);

/// Returns moves that bring every rank of `phase` its part of its stage's layers from ranks that hold them (the lowest
/// first, in turns), in the order in which carry_out() must execute them. hold_all_layers() must be true.
std::vector<TensorMove> moves_to_restore(const std::vector<RankInventory>& inventories, const Phase& phase);

}  // namespace frostpipe
