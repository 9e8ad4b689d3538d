#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <vector>

#include "executor/execute.h"
#include "executor/loading/dataset.h"
#include "executor/runtime/stage_compute.h"

namespace frostpipe {

class ActivationCache;
class Communicator;
class ComputeDevice;

/// The model and data of a run, equal on all ranks.
class TrainingTask {
 public:
  virtual ~TrainingTask() = default;
  virtual const Model& model() const = 0;
  virtual const Dataset& dataset() const = 0;
  /// Of activations as this run holds them.
  virtual std::int64_t hidden_size() const = 0;
  /// See RankSession::tie_embeddings.
  virtual std::int64_t tied_values() const = 0;
  /// Tensors that no file gives a start, or "the whole model".
  virtual std::vector<std::string> starts_at_random() const = 0;
  /// `cache` may be null: no phase may use one then. The task, device and cache must outlive the factory.
  /// `logical_rank`: the device of the cluster that this rank is.
  virtual std::unique_ptr<StageFactory> make_factory(ComputeDevice& device, const at::TensorOptions& compute,
                                                     ActivationCache* cache, int logical_rank) const = 0;
  /// A layer's weights at the start of the run.
  virtual void fill(int layer, LayerState& state) const = 0;
  /// Writes the trained model, if there is one; called by all ranks. `embeddings_are_tied`: they were never untied.
  virtual void save(bool embeddings_are_tied, const std::map<int, LayerState>& layers,
                    const std::vector<std::vector<LayerPart>>& parts, Communicator& communicator,
                    const std::filesystem::path& folder) const = 0;
};

/// Makes the model of options.model with the data of options.data; or, with options.emulation, the profile's model with
/// dummy samples of the workload's number and length. Throws InvalidInput.
std::unique_ptr<TrainingTask> make_training_task(const TrainOptions& options);

}  // namespace frostpipe
