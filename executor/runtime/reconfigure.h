#pragma once
#include <map>
#include <string>

#include "executor/communication/communicator.h"
#include "executor/models/layer_state.h"
#include "executor/runtime/stage_compute.h"
#include "plan/reconfiguration.h"

namespace frostpipe {

/// Held layers before `first_trainable_layer` that still train give up their gradients, and their moments are
/// offloaded.
void freeze_before(int first_trainable_layer, std::map<int, LayerState>& layers,
                   std::map<int, OffloadedMoments>& offloaded);

/// Brings layers, or parts that tensor ranks have of them, to the ranks that need them, weights and, where the move
/// says so, moments; drops what this rank's stages of `after` do not need, and what is `offloaded` of it is host memory
/// then. Called by all ranks with the same moves.
void carry_out(const std::vector<TensorMove>& moves, const Phase& after, const StageFactory& factory,
               Communicator& communicator, std::map<int, LayerState>& layers,
               const std::map<int, OffloadedMoments>& offloaded);

/// Carries out a transformation on this rank; called by all ranks at the same step, idle ones included.
///
/// Newly frozen layers give up their gradients, and their moments are offloaded; then the moves are carried out.
/// Afterwards `layers` holds exactly the layers of the rank's stages (nothing on an idle rank).
void reconfigure(const Reconfiguration& reconfiguration, const Phase& after, const StageFactory& factory,
                 Communicator& communicator, std::map<int, LayerState>& layers,
                 std::map<int, OffloadedMoments>& offloaded);

}  // namespace frostpipe
