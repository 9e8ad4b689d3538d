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

/// Runs the actions of one rank, of all its stages: one of the two interpreters of a Schedule. Waits, never reorders
/// compute. What overlaps in the schedule runs one after the other. Between two stages of the rank an activation or its
/// gradient is handed on as it is, without a copy.
class ScheduleRunner {
 public:
  /// The parts must outlive the runner.
  ScheduleRunner(const Phase& phase, int rank, const RankParts& parts);
  ScheduleRunner(ScheduleRunner&&) noexcept;  // before its first iteration
  ~ScheduleRunner();

  /// One repetition of the schedule's body. `next` is the mini-batch after `batch`, null at the end of the run. Where
  /// iterations overlap, the next one begins in it, unless `drains` or there is none: then nothing is left under way.
  /// All ranks of the phase decide alike. A wholly frozen stage may end one whole iteration before its receiver, but at
  /// the end of the run.
  IterationResult run_iteration(const MiniBatch& batch, const MiniBatch* next, int step, const IterationUpdate& update,
                                Trace& trace, bool drains = false);
  /// Waits for what wholly frozen stages have sent ahead of their receivers: before other messages follow.
  void finish_sends() { ahead_.finish(); }
  /// The next iteration has.
  bool has_begun() const { return begun_ != nullptr; }

  /// Optimizer steps that this rank's stages have done, if they did any: a step that ends with the loss of a peer may
  /// have been done all the same.
  std::optional<int> updates() const { return updates_; }
  /// No update is under way on a device that computes while the host goes on. After the loss of a peer such an update
  /// may have been made of what has not come.
  bool has_whole_weights() const { return has_whole_weights_; }

  /// Of the last of these updates, before clipping; none where it is on a device that computes while the host goes on.
  std::optional<double> gradient_norm() const { return gradient_norm_; }
  /// The next update, if it was interrupted so that it can be completed.
  const std::optional<InterruptedUpdate>& interrupted_update() const { return interrupted_update_; }

  /// Forward only, in evaluation mode: answers to `samples`, as answer_shape says, one after the other; known on the
  /// ranks of the last stage, for the samples of their own replica, 0 elsewhere. `most_samples`, `most_tokens`: at a
  /// time (batches_of).
  std::vector<double> answers(const Samples& data, std::span<const int> samples, int most_samples,
                              std::int64_t most_tokens = std::numeric_limits<std::int64_t>::max());

  /// The same of token slices on the host, one of each batch of texts that a causal model goes on with: after each text
  /// its most likely next token, slice after slice. Replicas take turns. What has no texts is left out.
  std::vector<double> next_tokens(std::span<const MicroBatch> slices);

 private:
  struct ForwardPass;
  void pass_forward(const ForwardPass& pass);
  struct Iteration;
  struct GraphTensors;

  void perform(Iteration& iteration, const Action& action);
  /// Waits for the device. Throws PeerLost where it may have gone on without what others were to send.
  void require_whole();
  /// Without graphs and the names of errors.
  void issue(Iteration& iteration, const Action& action);
  /// By a graph, or now captured as one.
  void issue_captured(Iteration& iteration, const Action& action);
  /// What computes, but for wholly frozen stages that send to another rank: what they make may outlast the iteration.
  bool is_captured(const Action& action) const;
  void forward(Iteration& iteration, const Action& action);
  void backward(Iteration& iteration, const Action& action);
  /// An iteration from its first action on. `next`: to read ahead.
  std::unique_ptr<Iteration> begin(const MiniBatch& batch, const MiniBatch* next, int step);
  /// Gives up graphs, with their memory.
  void reset_graphs();
  /// Its gradient step, which is captured with the iteration or made anew.
  void begin_gradient_step(Iteration& iteration, const IterationUpdate& update);
  /// To receive into: where the action that takes it is captured, the same tensor in each iteration.
  at::Tensor make_received(const Action& receive, std::int64_t tokens);
  /// What all iterations share.
  const RankParts& parts() const { return parts_.front(); }
  bool has_stage(int stage) const { return parts().stages.contains(stage); }
  at::Tensor make_activation(std::int64_t tokens) { return parts().stages.begin()->second->make_activation(tokens); }
  /// Of what an action works on, `range` of the mini-batch: of its token slice, if it has one.
  std::int64_t tokens_of(const Action& action, const MiniBatch& batch, SampleRange range) const;
  /// Those of a mini-batch by their numbers in the list: this replica's, or all where replicas are written out.
  std::vector<SampleRange> micro_batches_of(const MiniBatch& batch) const;
  /// From the first of them that this rank runs to the last.
  SampleRange share_of(const std::vector<SampleRange>& micro_batches) const;
  PostedReceives posted_receives() const;

  Phase phase_;
  int rank_;
  std::array<RankParts, 2> parts_;  // where iterations overlap: of even and odd ones, with stages of their own
  MeshCoordinate place_;            // in layout_of_lists
  int num_micro_batches_ = 0, first_micro_batch_ = 0, last_micro_batch_ = 0;  // of the list, and of those that it has
  bool overlaps_ = false;  // iterations do; the last rank's prologue is empty all the same
  std::vector<Action> prologue_, body_, epilogue_;
  RankMessages messages_;  // of one iteration
  SendsAhead ahead_;
  std::unique_ptr<Iteration> begun_;
  bool captures_update_ = false;             // with forwards and backwards
  std::unique_ptr<IterationGraphs> graphs_;  // null where there are none
  std::unique_ptr<GraphTensors> graph_tensors_;
  std::optional<int> updates_;
  bool has_whole_weights_ = true;
  std::optional<double> gradient_norm_;
  std::optional<InterruptedUpdate> interrupted_update_;
};

}  // namespace frostpipe
