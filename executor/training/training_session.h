#pragma once
#include <filesystem>
#include <vector>

#include "executor/checkpoint/checkpoint.h"
#include "executor/loading/samples.h"
#include "executor/runtime/gradient_step.h"
#include "executor/training/checkpoints/checkpoint_layers.h"
#include "plan/plan.h"
#include "plan/trace.h"

namespace frostpipe {

class PipelineSession;

/// The origin of the layers of a session's first phase.
struct LayerOrigin {
  const Checkpoint* checkpoint = nullptr;  // null: the layers with which a run begins
  bool embeddings_are_tied = false;        // if the model ties the head's matrix to the embedding, they are still tied
  bool keeps_older_weights = false;        // keep the checkpoint's older weights, if updates are delayed
};

/// A rank's part of the training until the next loss of a rank: its layers, and the means to run iterations of the
/// current phase. Trainer uses only this interface, whatever is trained. There are two kinds: a rank of a pipeline
/// (PipelineSession), and a device of an operator plan (operators/training/net_session.h). All ranks must call each
/// function at the same point, except const ones.
class TrainingSession {
 public:
  virtual ~TrainingSession() = default;

  /// Begins with `phase`, at `step`.
  virtual void start(const Phase& phase, int step, const LayerOrigin& origin) = 0;
  /// Changes to another phase; layers move to the ranks that need them.
  virtual void enter(const Phase& phase) = 0;
  virtual const Phase& phase() const = 0;
  /// Returns whether a phase has begun: false before start().
  virtual bool has_phase() const = 0;

  /// Runs optimizer step `step`, on `batch`. `next` is the mini-batch after it, to read ahead; null at the end of the
  /// run. Adds the rank's actions to `trace`. If `drains`, nothing of the next step may begin in this one.
  virtual IterationResult run_iteration(const MiniBatch& batch, const MiniBatch* next, int step,
                                        const IterationUpdate& update, Trace& trace, bool drains) = 0;
  /// True on exactly one rank, whose loss and times of steps are recorded.
  virtual bool reports_figures() const = 0;

  /// Implements CollectLayers.
  virtual LayersToWrite layers_to_write(const std::vector<int>& folder_of_rank, const CheckpointWriter& writer) = 0;
  /// Returns the answers to `samples` in the form that score_of() takes. Each answer is known to one rank, and is 0 on
  /// the others.
  virtual std::vector<double> answers(const std::vector<int>& samples) = 0;
  /// Writes the trained model to `folder`, on rank 0; a rehearsal writes none. `embeddings_are_tied` says that the
  /// embeddings were never untied.
  virtual void save(bool embeddings_are_tied, const std::filesystem::path& folder) = 0;

  /// Returns this session if it is that of a pipeline, whose layers can be restored from the memory of survivors; else
  /// null.
  virtual PipelineSession* pipeline() { return nullptr; }
};

}  // namespace frostpipe
