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
  std::optional<double> gradient_norm = {};  // of the last step
  bool lacks_norm = false;                   // it had the gradients of the next step too, but not their norm
  bool operator==(const RankInventory&) const = default;
};

/// Brings trainable layers, and figures of every step that they have done: can tell the others what the run is.
bool knows_the_run(const RankInventory& inventory);

/// The gradient norm of the step that `own` lacks it of, from a rank that has done that step and knows the run: all
/// that train agree on the norm when all have their gradients, and a loss may leave some with it and others without.
std::optional<double> norm_of_next_step(const std::vector<RankInventory>& inventories, const RankInventory& own);

/// `inventories` when those that lack such a norm have done the step with it.
std::vector<RankInventory> with_completed_steps(const std::vector<RankInventory>& inventories);

std::string to_text(const RankInventory& inventory);
RankInventory inventory_from_text(const std::string& text);

/// What `inventories` (by rank) bring that fits to the step and phase of `teller`, whose phase trains the layers from
/// `first_trainable_layer` on: layers that train, of ranks at its step and phase alone, and layers that are frozen in
/// both, of all. A rank that had not done the last update, or had not begun the phase, brings the rest as if it were
/// new.
std::vector<RankInventory> that_fit(const std::vector<RankInventory>& inventories, const RankInventory& teller,
                                    int first_trainable_layer);

/// Whether every layer is with one of the ranks, or all parts of it with several; of the layers that `needs_moments`
/// the moments too, offloaded or, where they trained until now, with the layer.
bool hold_all_layers(const std::vector<RankInventory>& inventories, int num_layers,
                     const std::vector<int>& needs_moments);

/// Moves that bring every rank of `phase` its part of the layers of its stage, from ranks that hold them (lowest first,
/// in turns); in the order in which carry_out() takes them.
std::vector<TensorMove> moves_to_restore(const std::vector<RankInventory>& inventories, const Phase& phase);

}  // namespace frostpipe
