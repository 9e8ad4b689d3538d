#pragma once
#include <map>
#include <optional>

#include "executor/cache/activation_cache.h"
#include "executor/models/transformer.h"
#include "executor/runtime/stage_compute.h"

namespace frostpipe {

/// Stages of a Transformer. Everything given must outlive it and what it makes.
class TransformerStageFactory final : public StageFactory {
 public:
  /// `cache` may be null: no phase may use one then.
  TransformerStageFactory(const TransformerConfig& config, const Model& model, const Samples& data, LayerTypes types,
                          at::Device device, int num_moments, ActivationCache* cache, double label_smoothing = 0);
  LayerState make_layer(int layer, bool trains) const override;
  std::unique_ptr<StageCompute> make_stage(const Phase& phase, const MeshCoordinate& coordinate,
                                           std::map<int, LayerState>& layers) const override;

 private:
  const TransformerConfig& config_;
  const Model& model_;
  const Samples& data_;
  LayerTypes types_;
  at::Device device_;
  int num_moments_;
  ActivationCache* cache_;
  double label_smoothing_;
};

}  // namespace frostpipe
