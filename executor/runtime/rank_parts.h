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

/// What a rank runs its part of a phase with.
struct RankParts {
  const Model& model;
  std::map<int, LayerState>& layers;                     // at least those of the stages
  std::map<int, std::unique_ptr<StageCompute>>& stages;  // those of the rank
  ActiveGroups& groups;
  ComputeDevice& device;
  std::int64_t tied_values = 0;  // see RankSession::tie_embeddings
  /// The stages again for every other iteration, where iterations overlap; else null.
  std::map<int, std::unique_ptr<StageCompute>>* other_stages = nullptr;
  bool uses_graphs = false;  // StageFactory::can_capture
  Optimizer optimizer = Optimizer::kAdamW;
  const Communicator* communicator = nullptr;  // of the groups; null for a rank that is alone
};

}  // namespace frostpipe
