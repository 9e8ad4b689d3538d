#include "executor/training/training_task.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "base/error.h"
#include "executor/device/device.h"
#include "executor/emulation/emulated_stage.h"
#include "executor/emulation/shrunk_model.h"
#include "executor/models/folder/model_folder.h"
#include "executor/runtime/transformer_stage.h"
#include "executor/training/saved_model.h"
#include "plan/memory.h"

namespace frostpipe {
namespace {

class TransformerTask final : public PipelineTask {
 public:
  explicit TransformerTask(const TrainOptions& options)
      : options_(options),
        folder_(open_model_folder(options.model)),
        dataset_(
            load_dataset({options.data, options.test_data, options.held_out, options.seed}, options.samples, folder_)),
        weights_(folder_.path),
        starts_at_random_(check_weights(folder_, weights_)) {
    folder_.config.dropout = options.dropout;
    model_ = model_of(folder_.config, folder_.name);
    for (const Phase& phase : options.plan.phases) require_heads_for(phase.layout.tensor_parallel_size);
  }
  const Model& model() const override { return model_; }
  const Dataset& dataset() const override { return dataset_; }
  std::int64_t hidden_size() const override { return folder_.config.hidden_size; }
  std::int64_t tied_values() const override { return model_.tied_parameter_count; }
  std::vector<std::string> starts_at_random() const override { return starts_at_random_; }
  std::unique_ptr<StageFactory> make_factory(const SessionPlace& place) const override {
    return std::make_unique<TransformerStageFactory>(
        TransformerStageInputs{.config = folder_.config,
                               .model = model_,
                               .data = *dataset_.samples,
                               .types = layer_types_of(options_.plan.dtype, options_.plan.frozen_dtype),
                               .device = place.device.torch_device(),
                               .optimizer = options_.plan.optimizer,
                               .cache = place.cache,
                               .label_smoothing = options_.label_smoothing,
                               .cuda_graphs = options_.cuda_graphs});
  }
  void fill(int layer, LayerState& state) const override { load_layer(folder_, weights_, layer, options_.seed, state); }
  void save(bool embeddings_are_tied, const std::map<int, LayerState>& layers,
            const std::vector<std::vector<LayerPart>>& parts, Communicator& communicator,
            const std::filesystem::path& folder) const override {
    save_model_folder(folder_, embeddings_are_tied && model_.tied_parameter_count > 0, layers, parts, communicator,
                      folder, {.dtype = *find_saved_dtype(options_.save_dtype)});
  }

 private:
  void require_heads_for(int tensor_parallel_size) const {
    const std::int64_t most = max_tensor_ranks(folder_.config);
    if (tensor_parallel_size > most)
      throw InvalidInput(options_.plan_source + ": layout.tensor_parallel_size",
                         fmt::format("must be at most {}: tensor ranks share the model's attention heads", most),
                         std::to_string(tensor_parallel_size));
  }

  const TrainOptions& options_;
  ModelFolder folder_;
  Dataset dataset_;
  WeightFiles weights_;
  std::vector<std::string> starts_at_random_;
  Model model_;
};

class EmulatedTask final : public PipelineTask {
 public:
  explicit EmulatedTask(const TrainOptions& options)
      : plan_(options.plan), emulation_(*options.emulation), cluster_(*options.cluster) {
    const Workload& workload = *emulation_.profile.workload;
    const std::vector<std::int32_t> sample(std::lround(workload.tokens), 0);
    dataset_.samples = std::make_unique<TokenSamples>(
        EncodedData{.token_ids = std::vector<std::vector<std::int32_t>>(workload.num_samples, sample),
                    .labels = std::vector<int>(workload.num_samples, 0)});
    dataset_.split.train.resize(workload.num_samples);
    std::iota(dataset_.split.train.begin(), dataset_.split.train.end(), 0);
  }
  const Model& model() const override { return emulation_.profile.model; }
  const Dataset& dataset() const override { return dataset_; }
  std::int64_t hidden_size() const override { return shrunk_hidden_size(model(), emulation_.shrink); }
  std::int64_t tied_values() const override { return shrunk_tied_values(model(), emulation_.shrink); }
  std::vector<std::string> starts_at_random() const override { return {}; }
  std::unique_ptr<StageFactory> make_factory(const SessionPlace& place) const override {
    FROSTPIPE_CHECK(place.device.virtual_clock(), "a rehearsal is on emulated devices");
    return std::make_unique<EmulatedStageFactory>(
        emulation_.profile,
        EmulatedStageOptions{.device_type = cluster_.devices.at(place.logical_rank).type,
                             .optimizer = plan_.optimizer,
                             .dtype = plan_.dtype,
                             .shrink = emulation_.shrink,
                             .tensors = tensor_options(plan_.dtype, place.device)},
        *place.device.virtual_clock(), place.cache);
  }
  void fill(int, LayerState&) const override {}  // the factory does this
  void save(bool, const std::map<int, LayerState>&, const std::vector<std::vector<LayerPart>>&, Communicator&,
            const std::filesystem::path&) const override {}

 private:
  const TrainingPlan& plan_;
  const Emulation& emulation_;
  const Cluster& cluster_;
  Dataset dataset_;
};

}  // namespace

at::TensorOptions tensor_options(DType dtype, const ComputeDevice& device) {
  return at::TensorOptions().dtype(layer_types_of(dtype).computed).device(device.torch_device());
}

std::unique_ptr<TrainingTask> make_training_task(const TrainOptions& options) {
  if (options.emulation) return std::make_unique<EmulatedTask>(options);
  return std::make_unique<TransformerTask>(options);
}

}  // namespace frostpipe
