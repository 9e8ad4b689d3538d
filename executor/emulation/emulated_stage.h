#pragma once
#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "executor/cache/activation_cache.h"
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

/// When the last action of a rank should have ended.
struct EmulatedClock {
  std::chrono::steady_clock::time_point end;
};

/// Stages that take a profile's times asleep. Tensors are there, 1 / shrink of their size: weights, activations at the
/// cuts, what a layer keeps from F to B, cache entries; so messages, moves and memory are real, and only the arithmetic
/// is missing. Everything given must outlive it.
class EmulatedStageFactory final : public StageFactory {
 public:
  /// `cache` may be null: no phase may use one then.
  EmulatedStageFactory(const Profile& profile, EmulatedStageOptions options, ActivationCache* cache);
  /// Weights hold the layer's number, so that layers differ.
  LayerState make_layer(int layer, bool trains) const override;
  std::unique_ptr<StageCompute> make_stage(const Phase& phase, int stage,
                                           std::map<int, LayerState>& layers) const override;

 private:
  const Profile& profile_;
  EmulatedStageOptions options_;
  std::shared_ptr<EmulatedClock> clock_;  // of the rank: its stages take turns
  ActivationCache* cache_;
};

/// Hidden size of shrunk activations: rounded up, at least 1.
int shrunk_hidden_size(const Model& model, int shrink);

}  // namespace frostpipe
