#pragma once
#include <map>
#include <optional>

#include "executor/activation_cache.h"
#include "executor/encoder.h"
#include "executor/stage_compute.h"

namespace frostpipe {

/// Stages of a BERT-type encoder. Everything given must outlive it and what it makes.
class EncoderStageFactory final : public StageFactory {
 public:
  /// `cache` may be null: no phase may use one then.
  EncoderStageFactory(const EncoderConfig& config, const Model& model, const EncodedData& data, at::TensorOptions options, int num_moments,
                      ActivationCache* cache);
  LayerState make_layer(int layer, bool trains) const override;
  std::unique_ptr<StageCompute> make_stage(const Phase& phase, const Place& place, std::map<int, LayerState>& layers) const override;

 private:
  const EncoderConfig& config_;
  const Model& model_;
  const EncodedData& data_;
  at::TensorOptions options_;
  int num_moments_;
  ActivationCache* cache_;
};

}  // namespace frostpipe
