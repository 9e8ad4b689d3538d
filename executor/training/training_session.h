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

/// Where the layers of a session's first phase come from.
struct LayerOrigin {
  const Checkpoint* checkpoint = nullptr;  // null: as the run begins
  bool embeddings_are_tied = false;        // the head's matrix to the embedding, where the model ties them
  bool keeps_older_weights = false;        // that the checkpoint has, where updates are delayed
};

/// What a rank trains with until the next loss: its share of the layers, and the means to carry out iterations of the
/// running phase. Trainer drives it, and knows nothing else of what is trained. A rank of a pipeline (PipelineSession)
/// and a device of an operator plan (operators/training/net_session.h) are the two kinds. All ranks call each function
/// at the same point, but for those that are const.
class TrainingSession {
 public:
  virtual ~TrainingSession() = default;

  /// Begins with `phase`, at `step`.
  virtual void start(const Phase& phase, int step, const LayerOrigin& origin) = 0;
  /// Changes to another phase: layers move to the ranks that need them there.
  virtual void enter(const Phase& phase) = 0;
  virtual const Phase& phase() const = 0;
  /// False before start().
  virtual bool has_phase() const = 0;

  /// One optimizer step on `batch`. `next`: the mini-batch after it, to read ahead; null at the end of the run. What
  /// the rank did goes to `trace`. `drains`: nothing of the next step may begin in this one.
  virtual IterationResult run_iteration(const MiniBatch& batch, const MiniBatch* next, int step,
                                        const IterationUpdate& update, Trace& trace, bool drains) = 0;
  /// On one rank: its loss counts, and its times of steps.
  virtual bool reports_figures() const = 0;

  /// As CollectLayers.
  virtual LayersToWrite layers_to_write(const std::vector<int>& places, const CheckpointWriter& writer) = 0;
  /// Answers to `samples`, as score_of takes them, each known to one rank and 0 on the others.
  virtual std::vector<double> answers(const std::vector<int>& samples) = 0;
  /// Writes the trained model, if there is one. `embeddings_are_tied`: they were never untied.
  virtual void save(bool embeddings_are_tied, const std::filesystem::path& folder) = 0;

  /// A pipeline's, whose layers survivors of a loss hand to each other; else null.
  virtual PipelineSession* pipeline() { return nullptr; }
};

}  // namespace frostpipe
