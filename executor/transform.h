#pragma once
#include <map>
#include <string>

#include "executor/communicator.h"
#include "executor/layer_state.h"
#include "executor/stage_compute.h"
#include "plan/transformation.h"

namespace frostpipe {

/// Carries out a transformation on this rank; called by all ranks at the same step, idle ones included.
///
/// Newly frozen layers give up their gradients and park their moments; layers that this rank's stage of `after` needs come from the
/// ranks that the transformation names, weights and, where they still train, moments; layers that it no longer needs are
/// dropped. Afterwards `layers` holds exactly the layers of the rank's stage (nothing on an idle rank).
void transform(const Transformation& transformation, const Phase& after, const StageFactory& factory, Communicator& communicator,
               std::map<int, LayerState>& layers, std::map<int, ParkedMoments>& parked);

}  // namespace frostpipe
