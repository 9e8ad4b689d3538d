#pragma once
#include <map>

#include "executor/cache/activation_cache.h"
#include "executor/communication/tensor_parallel.h"
#include "executor/models/micro_batch.h"
#include "executor/runtime/stage_compute.h"
#include "profiles/transformer/parameters.h"

namespace frostpipe {

/// The arguments for stages of a Transformer. All references must outlive the stages.
struct TransformerStageInputs {
  const TransformerConfig& config;
  const Model& model;
  const Samples& data;
  LayerTypes types;
  at::Device device;
  Optimizer optimizer = Optimizer::kSgd;
  ActivationCache* cache = nullptr;  // if null, no phase may use a cache
  double label_smoothing = 0;
  bool cuda_graphs = false;  // on CUDA: capture iterations as CUDA graphs if possible
};

/// Makes the stages of a Transformer.
class TransformerStageFactory final : public StageFactory {
 public:
  explicit TransformerStageFactory(const TransformerStageInputs& inputs) : inputs_(inputs) {}
  LayerState make_layer(int layer, bool trains, const TensorSlice& slice) const override;
  bool can_capture(const Phase& phase) const override;
  std::unique_ptr<StageCompute> make_stage(const Phase& phase, int stage, std::map<int, LayerState>& layers,
                                           const TensorRanks& ranks) const override;

 private:
  TransformerStageInputs inputs_;
};

}  // namespace frostpipe
