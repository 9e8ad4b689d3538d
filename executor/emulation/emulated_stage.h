#pragma once
#include <map>
#include <memory>
#include <string>

#include "executor/cache/activation_cache.h"
#include "executor/device/virtual_clock.h"
#include "executor/runtime/stage_compute.h"
#include "profiles/profile.h"

namespace frostpipe {

struct EmulatedStageOptions {
  // Whose times the profile has:
  std::string device_type;
  Optimizer optimizer = Optimizer::kAdamW;
  DType dtype = DType::kFloat32;
  int shrink = 1;
  at::TensorOptions tensors;
};

/// Stages that take a profile's times, asleep, whatever the host spends on them. Tensors are there, 1 / shrink of their
/// size: weights, activations at the cuts, what a layer keeps from F to B, cache entries; so messages, moves and memory
/// are real, and only the arithmetic is missing. Everything given must outlive it.
class EmulatedStageFactory final : public StageFactory {
 public:
  /// `cache` may be null: no phase may use one then.
  EmulatedStageFactory(const Profile& profile, EmulatedStageOptions options, VirtualClock& clock,
                       ActivationCache* cache);
  /// Weights hold the layer's number, so that layers differ.
  LayerState make_layer(int layer, bool trains, const TensorSlice& slice) const override;
  std::unique_ptr<StageCompute> make_stage(const Phase& phase, int stage, std::map<int, LayerState>& layers,
                                           const TensorRanks& ranks) const override;

 private:
  const Profile& profile_;
  EmulatedStageOptions options_;
  VirtualClock& clock_;
  ActivationCache* cache_;
};

}  // namespace frostpipe
