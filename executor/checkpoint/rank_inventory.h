#pragma once
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "plan/reconfiguration.h"

namespace frostpipe {

/// A frozen layer whose moments a rank has offloaded, or its part of them.
struct OffloadedLayer {
  int layer = 0;
  TensorSlice slice = {};
  bool operator==(const OffloadedLayer&) const = default;
};

/// What a process brings into a new rendezvous round.
struct RankInventory {
  int step = -1;               // optimizer steps that its trainable layers have done; -1 = it brings nothing whole
  int phase_from = 0;          // from_step of the phase that it was in
  int num_recorded = 0;        // steps whose figures it has written down
  std::vector<int> layers;     // that it holds
  std::vector<int> trainable;  // of these
  TensorSlice slice = {};      // its part of them
  std::vector<OffloadedLayer> offloaded;
  bool operator==(const RankInventory&) const = default;
};

/// Brings trainable layers, and figures of every step that they have done: can tell the others what the run is.
bool knows_the_run(const RankInventory& inventory);

std::string to_text(const RankInventory& inventory);
RankInventory inventory_from_text(const std::string& text);

/// The step to go on with from the survivors' memory, without any step lost: those that hold trainable layers agree on
/// step and phase, and every layer is with one of them, or all parts of it with several, those from
/// `first_trainable_layer` on with all that training needs; of the frozen ones that `needs_moments` the moments too,
/// offloaded or, where they trained until now, with the layer. Else nothing. `inventories` are by rank.
std::optional<int> common_step(const std::vector<RankInventory>& inventories, int num_layers, int first_trainable_layer,
                               const std::vector<int>& needs_moments);

/// Moves that bring every rank of `phase` its part of the layers of its stage, from ranks that hold them (lowest first,
/// in turns); in the order in which carry_out() takes them.
std::vector<TensorMove> moves_to_restore(const std::vector<RankInventory>& inventories, const Phase& phase);

}  // namespace frostpipe
