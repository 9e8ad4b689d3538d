#pragma once
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "executor/loading/samples.h"
#include "executor/runtime/gradient_step.h"
#include "executor/runtime/iteration_graphs.h"
#include "executor/runtime/message_exchange.h"
#include "executor/runtime/rank_parts.h"
#include "plan/batch.h"
#include "plan/plan.h"
#include "plan/trace.h"

namespace frostpipe {

/// Runs the actions of one rank, for all its stages; together with the simulator it is one of the two interpreters of a
/// Schedule. It waits for messages but never reorders computation. Actions that overlap in the schedule run one after
/// another. Between two stages of the rank, activations and gradients are passed without a copy.
class ScheduleRunner {
 public:
  /// `parts` must outlive the runner.
  ScheduleRunner(const Phase& phase, int rank, const RankParts& parts);
  ScheduleRunner(ScheduleRunner&&) noexcept;  // only before its first iteration
  ~ScheduleRunner();

  /// Runs one repetition of the schedule's body. `next` is the next mini-batch, null at the end of the run. If
  /// iterations overlap, the next one begins here, unless `drains` is set or there is none: then no iteration is left
  /// in progress. All ranks of the phase must pass the same values. A completely frozen stage may finish up to one
  /// iteration before its receiver, except at the end of the run.
  IterationResult run_iteration(const MiniBatch& batch, const MiniBatch* next, int step, const IterationUpdate& update,
                                Trace& trace, bool drains = false);
  /// Waits for messages that completely frozen stages have sent ahead of their receivers. Must precede other messages.
  void finish_sends() { ahead_.finish(); }
  /// True if the next iteration has begun.
  bool has_begun() const { return begun_ != nullptr; }

  /// Returns the number of optimizer steps of the run that this rank's stages have done; nothing before the first
  /// update of this runner. A step that fails because a peer is lost may have been done nevertheless.
  std::optional<int> updates() const { return updates_; }
  /// False while an update is in progress on a device that runs asynchronously to the host. After a peer is lost, such
  /// an update may have used data that never arrived.
  bool has_whole_weights() const { return has_whole_weights_; }

  /// Returns the norm of the last update's gradients before clipping; nothing before the first update, and on a device
  /// that runs asynchronously to the host.
  std::optional<double> gradient_norm() const { return gradient_norm_; }
  /// Returns the next update, if it was interrupted and can be completed.
  const std::optional<InterruptedUpdate>& interrupted_update() const { return interrupted_update_; }

  /// Runs forwards in evaluation mode and returns the answers to `samples`, one after the other, each of answer_shape.
  /// The first tensor rank of the last stage knows the answers to the samples of its replica; all other values are 0.
  /// At most `max_samples` samples and `max_tokens` tokens are computed at a time (batches_of). All ranks of the phase
  /// must call it.
  std::vector<double> answers(const Samples& data, std::span<const int> samples, int max_samples,
                              std::int64_t max_tokens = std::numeric_limits<std::int64_t>::max());

  /// Returns, in the same way, the most likely next token of each text in `slices`, slice after slice. A slice is a
  /// token slice, on the host, of a batch of texts that a causal model continues. Replicas take the slices in turn.
  /// Slices without texts are skipped.
  std::vector<double> next_tokens(std::span<const MicroBatch> slices);

 private:
  struct ForwardPass;
  void pass_forward(const ForwardPass& pass);
  struct Iteration;
  struct GraphTensors;

  void perform(Iteration& iteration, const Action& action);
  /// Waits for the device. Throws PeerLost if it may have continued without data of other ranks.
  void require_whole();
  /// Runs an action without graphs and without naming it in errors.
  void issue(Iteration& iteration, const Action& action);
  /// Replays an action's graph, or captures it now.
  void issue_captured(Iteration& iteration, const Action& action);
  /// True if graphs are used and the action is computation, or an update that they include. False for forwards of
  /// completely frozen stages that send to another rank, since their output may outlast the iteration.
  bool is_captured(const Action& action) const;
  void forward(Iteration& iteration, const Action& action);
  void backward(Iteration& iteration, const Action& action);
  /// Begins an iteration. `next` is the mini-batch to read ahead.
  std::unique_ptr<Iteration> begin(const MiniBatch& batch, const MiniBatch* next, int step);
  /// Releases graphs and their memory.
  void reset_graphs();
  /// Makes the iteration's gradient step, or reuses the captured one.
  void begin_gradient_step(Iteration& iteration, const IterationUpdate& update);
  /// Returns a tensor to receive into. It is the same in each iteration if the action that uses it is captured.
  at::Tensor make_received(const Action& receive, std::int64_t tokens);
  /// Returns the parts that all iterations share.
  const RankParts& parts() const { return parts_.front(); }
  bool has_stage(int stage) const { return parts().stages.contains(stage); }
  at::Tensor make_activation(std::int64_t tokens) { return parts().stages.begin()->second->make_activation(tokens); }
  /// Returns the number of tokens in samples `range` of the mini-batch, or in the action's token slice of them.
  std::int64_t tokens_of(const Action& action, const MiniBatch& batch, SampleRange range) const;
  /// Returns the micro-batches by their numbers in the schedule's list: those of this replica, or of all replicas if
  /// the list has them (layout_of_lists).
  std::vector<SampleRange> micro_batches_of(const MiniBatch& batch) const;
  /// Returns the samples from the first to the last micro-batch that this rank runs.
  SampleRange share_of(const std::vector<SampleRange>& micro_batches) const;
  PostedReceives posted_receives() const;
  PartOfMessages part_of_messages(const RankParts& parts) const;

  Phase phase_;
  int rank_;
  std::array<RankParts, 2> parts_;  // with overlap: for even and odd iterations, each with stages of its own
  MeshCoordinate place_;            // this rank's coordinate in layout_of_lists()
  int num_micro_batches_ = 0, first_micro_batch_ = 0,
      last_micro_batch_ = 0;  // of the list; first and last that this rank runs
  bool overlaps_ = false;     // iterations overlap; even then the last rank's prologue is empty
  std::vector<Action> prologue_, body_, epilogue_;
  RankMessages messages_;  // the messages of one iteration
  SendsAhead ahead_;
  std::unique_ptr<Iteration> begun_;
  bool captures_update_ = false;             // the update is captured too
  std::unique_ptr<IterationGraphs> graphs_;  // null if graphs are not used
  std::unique_ptr<GraphTensors> graph_tensors_;
  std::optional<int> updates_;
  bool has_whole_weights_ = true;
  std::optional<double> gradient_norm_;
  std::optional<InterruptedUpdate> interrupted_update_;
};

}  // namespace frostpipe
