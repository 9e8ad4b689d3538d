#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <vector>

#include "executor/execute.h"
#include "executor/loading/dataset.h"
#include "executor/runtime/stage_compute.h"
#include "executor/training/run_recorder.h"

namespace frostpipe {

class ActivationCache;
class Communicator;
class ComputeDevice;
class TrainingSession;

/// The objects that a session uses; all of them must outlive it.
struct SessionPlace {
  const TrainOptions& options;
  ComputeDevice& device;
  Communicator& communicator;
  ActivationCache* cache = nullptr;  // if null, no phase may use a cache
  int logical_rank = 0;              // identifies this rank's device in the cluster
};

/// Returns the dtype and the device of the tensors with which a run computes.
at::TensorOptions tensor_options(DType dtype, const ComputeDevice& device);

/// The model and data of a run, equal on all ranks.
class TrainingTask {
 public:
  virtual ~TrainingTask() = default;
  virtual const Model& model() const = 0;
  virtual const Dataset& dataset() const = 0;
  /// Returns the hidden size of the activations to be cached; 0 if none can be cached.
  virtual std::int64_t hidden_size() const { return 0; }
  /// Returns the tensors that no file initializes, or "the whole model".
  virtual std::vector<std::string> starts_at_random() const = 0;
  /// Makes a session without layers. The task must outlive it.
  virtual std::unique_ptr<TrainingSession> make_session(const SessionPlace& place) const = 0;
  /// Returns the number of first steps of a phase whose spans are kept.
  virtual int traced_steps() const { return RunRecorder::kTracedSteps; }
  /// Adds the figures of this kind of task to the summary and the trace. Called on rank 0 at the end of a run.
  virtual void complete(const TrainingPlan& /*executed*/, RunSummary& /*run*/, Trace& /*whole_run*/) const {}
};

/// A task that is trained by a pipeline.
class PipelineTask : public TrainingTask {
 public:
  /// Returns the argument of RankSession::tie_embeddings().
  virtual std::int64_t tied_values() const = 0;
  /// Makes the factory of this rank's layers and stages.
  virtual std::unique_ptr<StageFactory> make_factory(const SessionPlace& place) const = 0;
  /// Sets a layer's weights at the start of the run.
  virtual void fill(int layer, LayerState& state) const = 0;
  /// Does what TrainingSession::save() does, with this rank's layers. `parts` has, by layer, the ranks that hold it.
  virtual void save(bool embeddings_are_tied, const std::map<int, LayerState>& layers,
                    const std::vector<std::vector<LayerPart>>& parts, Communicator& communicator,
                    const std::filesystem::path& folder) const = 0;
  std::unique_ptr<TrainingSession> make_session(const SessionPlace& place) const override;
};

/// Makes the model of options.model with the data of options.data; or, with options.emulation, the profile's model with
/// dummy samples of the workload's number and length. Throws InvalidInput.
std::unique_ptr<TrainingTask> make_training_task(const TrainOptions& options);

}  // namespace frostpipe
