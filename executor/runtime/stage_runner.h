#pragma once
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "executor/communication/communicator.h"
#include "executor/device/device.h"
#include "executor/loading/samples.h"
#include "executor/models/layer_state.h"
#include "executor/runtime/stage_compute.h"
#include "plan/batch.h"
#include "plan/plan.h"
#include "plan/trace.h"

namespace frostpipe {

/// What a rank's part of one iteration brought.
struct IterationResult {
  /// Mean over the mini-batch's samples; 0 on ranks that train nothing.
  double loss = 0;
  /// Squared L2 norm of each block's reduced gradients before clipping; empty on ranks that train nothing.
  std::vector<double> block_square_sums;
};

/// What a rank runs its stage with.
struct StageParts {
  std::map<int, LayerState>& layers;  // at least those of the stage
  StageCompute& compute;
  ActiveGroups& groups;
  ComputeDevice& device;
};

/// The update that ends an iteration.
struct IterationUpdate {
  UpdateRule rule;           // its gradient_scale is replaced by what clipping asks for
  double gradient_clip = 0;  // to this norm; 0 = off
  bool applied = true;       // else OPTIMIZER_STEP does nothing: gradients stay for the caller to look at
};

/// Runs the actions of one rank: one of the two interpreters of a Schedule. Waits, never reorders compute. Receives are
/// posted two messages ahead of their use (on CUDA when needed). What is sent is kept until another message says that
/// it has arrived: the gradient that comes back for an activation, or an activation that the stage below sends after
/// the gradient's receipt; the last ones until the iteration's end. A frozen stage, which gets nothing back, has two
/// messages under way and waits for the older one before it sends another.
class StageRunner {
 public:
  /// The model and the parts must outlive the runner. `tied_values`: see RankSession::tie_embeddings.
  StageRunner(const Model& model, const Phase& phase, int rank, const StageParts& parts, std::int64_t tied_values = 0);

  /// One repetition of the schedule's body. `next` is the mini-batch after `batch`, null at the end of the run.
  IterationResult run_iteration(const MiniBatch& batch, const MiniBatch* next, int step, const IterationUpdate& update,
                                Trace& trace);

  /// Optimizer steps that this stage has done, if it did any: a step that ends with the loss of a peer may have been
  /// done all the same.
  std::optional<int> updates() const { return updates_; }

  /// Forward only, in evaluation mode: answers to `samples`, answer_size values each; known on the ranks of the last
  /// stage, for the samples of their own replica, 0 elsewhere. `most_samples`, `most_tokens`: at a time (batches_of).
  std::vector<double> answers(const Samples& data, std::span<const int> samples, int most_samples,
                              std::int64_t most_tokens = std::numeric_limits<std::int64_t>::max());

 private:
  struct Iteration;

  void perform(Iteration& iteration, const Action& action);
  void forward(Iteration& iteration, const Action& action);
  void backward(Iteration& iteration, const Action& action);
  void send(Iteration& iteration, const Action& action);
  void receive(Iteration& iteration, const Action& action);
  /// Waits for this send, if it is under way, and lets go of its tensor.
  static void finish_send(std::map<int, Transfer>& sends, int micro_batch);
  void reduce_gradient(Iteration& iteration);
  /// What may have a gradient in this iteration, of each layer of the stage that trains.
  std::map<int, TouchedGradients> touched_gradients() const;
  /// Gives both ends of the pipeline the sum of their tied gradients.
  void reduce_tied();
  /// The tied part of a layer's gradients.
  at::Tensor tied_gradient(int layer) { return layers_.at(layer).gradients.narrow(0, 0, tied_values_); }
  void optimizer_step(Iteration& iteration);
  /// Posts receives of one direction until `up_to` are under way.
  void post_receives(Iteration& iteration, bool is_forward, std::size_t up_to);
  /// This replica's micro-batches of a mini-batch.
  std::vector<SampleRange> micro_batches_of(const MiniBatch& batch) const;
  int neighbour(int offset) const;

  const Model& model_;
  Phase phase_;
  int rank_;
  MeshCoordinate coordinate_;
  LayerRange range_;
  std::vector<Action> body_;
  bool gets_gradients_ = false;
  std::map<int, std::vector<int>> arrived_before_;  // by micro-batch: gradients that the stage below has before it
                                                    // sends this micro-batch's activation
  std::map<int, LayerState>& layers_;
  StageCompute& compute_;
  ActiveGroups& groups_;
  ComputeDevice& device_;
  std::size_t receives_ahead_;
  std::int64_t tied_values_;
  std::optional<int> updates_;
};

}  // namespace frostpipe
