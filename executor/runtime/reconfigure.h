#pragma once
#include <map>

#include "executor/communication/communicator.h"
#include "executor/models/layer_state.h"
#include "executor/runtime/stage_compute.h"
#include "plan/reconfiguration.h"

namespace frostpipe {

/// Freezes trainable layers before `first_trainable_layer`: releases their gradients and offloads their moments.
void freeze_before(int first_trainable_layer, std::map<int, LayerState>& layers,
                   std::map<int, OffloadedMoments>& offloaded);

/// Moves layers, or tensor ranks' parts of them, to the ranks that need them: weights and, if a move says so, moments.
/// Releases layers that this rank's stages of `after` do not need; their offloaded tensors then count as host memory.
/// Must be called by all ranks with the same moves.
void carry_out(const std::vector<TensorMove>& moves, const Phase& after, const StageFactory& factory,
               Communicator& communicator, std::map<int, LayerState>& layers,
               const std::map<int, OffloadedMoments>& offloaded);

/// Carries out a reconfiguration on this rank. Must be called by all ranks at the same step, including idle ones.
///
/// Newly frozen layers release their gradients, and their moments are offloaded; then the moves are carried out.
/// Afterwards `layers` has exactly the layers of the rank's stages (none on an idle rank).
void reconfigure(const Reconfiguration& reconfiguration, const Phase& after, const StageFactory& factory,
                 Communicator& communicator, std::map<int, LayerState>& layers,
                 std::map<int, OffloadedMoments>& offloaded);

}  // namespace frostpipe
