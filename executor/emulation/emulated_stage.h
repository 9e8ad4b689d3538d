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
  // These select the measurements of the profile:
  std::string device_type;
  Optimizer optimizer = Optimizer::kAdamW;
  DType dtype = DType::kFloat32;
  // These describe the tensors that exist:
  int shrink = 1;             // they have 1 / shrink of the real size
  at::TensorOptions tensors;  // dtype of activations, and the device
};

/// Makes stages that take a profile's times in virtual time, whatever the host's speed. Their tensors exist with 1 /
/// shrink of their size: weights, activations at stage boundaries, saved activations from F to B, cache entries.
/// Messages, moves and memory are therefore real, and only the arithmetic is missing. Profile, clock and cache must
/// outlive the factory and its stages.
class EmulatedStageFactory final : public StageFactory {
 public:
  /// If `cache` is null, no phase may use a cache.
  EmulatedStageFactory(const Profile& profile, EmulatedStageOptions options, VirtualClock& clock,
                       ActivationCache* cache);
  /// Makes a layer whose weights all have the value `layer` + 1, so that layers differ.
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
