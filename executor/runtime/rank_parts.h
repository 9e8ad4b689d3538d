#pragma once
#include <cstdint>
#include <map>
#include <memory>

#include "executor/communication/communicator.h"
#include "executor/device/device.h"
#include "executor/models/layer_state.h"
#include "executor/runtime/stage_compute.h"
#include "profiles/model.h"
#include "profiles/optimizer.h"

namespace frostpipe {

/// The objects with which a rank runs its part of a phase.
struct RankParts {
  const Model& model;
  std::map<int, LayerState>& layers;                     // at least the layers of the stages
  std::map<int, std::unique_ptr<StageCompute>>& stages;  // stages of this rank
  ActiveGroups& groups;
  ComputeDevice& device;
  std::int64_t tied_values = 0;  // see RankSession::tie_embeddings
  /// A second set of stages for every other iteration, if iterations overlap; else null.
  std::map<int, std::unique_ptr<StageCompute>>* other_stages = nullptr;
  bool uses_graphs = false;  // see StageFactory::can_capture
  Optimizer optimizer = Optimizer::kAdamW;
  const Communicator* communicator = nullptr;  // null for a single rank
};

}  // namespace frostpipe
