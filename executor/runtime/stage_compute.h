#pragma once
#include <ATen/core/Tensor.h>

#include <compare>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "executor/communication/tensor_parallel.h"
#include "executor/loading/samples.h"
#include "executor/models/layer_state.h"
#include "executor/models/task.h"
#include "plan/action.h"
#include "plan/batch.h"
#include "plan/plan.h"

namespace frostpipe {

/// What a compute action works on: a micro-batch, or a token slice of it.
struct Part {
  int micro_batch = 0;
  int slice = 0;
  auto operator<=>(const Part&) const = default;
};

/// Of an action that has a micro-batch.
inline Part part_of(const Action& action) { return {*action.micro_batch, action.slice.value_or(0)}; }

/// What a stage computes on one rank, without messages: the inside of F, B, I, W, CACHE_READ, CACHE_WRITE and of the
/// update.
/// ScheduleRunner calls it in the schedule's order.
class StageCompute {
 public:
  virtual ~StageCompute() = default;

  /// Uninitialised packed activation of `tokens` tokens, or of the own ones of these, as neighbours exchange it.
  virtual at::Tensor make_activation(std::int64_t tokens) const = 0;

  /// Before the first action of an iteration. `share`: this replica's samples of `batch`; `next_share`: those of the
  /// mini-batch after it, to read ahead (none at the end of the run). Both outlive the iteration.
  virtual void begin_iteration(const MiniBatch& batch, SampleRange share, const MiniBatch* next,
                               SampleRange next_share) = 0;
  /// After begin_iteration: another iteration is still under way, so the newest weights are those of this one, which
  /// will be the older ones when that has ended.
  virtual void use_newest_weights() {}

  /// Waits for what the cache has of the micro-batch; before each of its token slices, of which the first does it all.
  virtual void cache_read(int micro_batch, SampleRange range) = 0;
  /// F of one micro-batch, samples `range` of the mini-batch, or of one of its token slices. `input` is undefined on
  /// the first stage. Returns the activation to send; undefined on the last stage.
  virtual at::Tensor forward(Part part, SampleRange range, at::Tensor input) = 0;
  /// Whether cache_write() has anything to store now, for which activations leave the device.
  virtual bool has_to_write(int /*micro_batch*/, SampleRange /*range*/) const { return true; }
  /// Stores the micro-batch's activations at the frozen boundary; after each of its token slices, when all have come.
  virtual void cache_write(int micro_batch, SampleRange range) = 0;
  /// B. `gradient` of the output is undefined on the last stage, which adds the loss to loss(). Returns the input's
  /// gradient; undefined unless the stage before trains.
  virtual at::Tensor backward(Part part, at::Tensor gradient) = 0;
  /// I, in place of B: the same, but for the gradients of weight matrices and tables.
  virtual at::Tensor input_gradient(Part part, at::Tensor gradient) = 0;
  /// W: those gradients, from what I has kept.
  virtual void weight_gradient(Part part) = 0;
  /// Rows of the embedding's table that tokens of this iteration's mini-batch look up, over all replicas, by their
  /// place among those that the rank has; the others have no gradients. [rows] int64, ascending, each once, on a tensor
  /// rank perhaps none; undefined: there may be one anywhere.
  virtual at::Tensor looked_up_rows() const = 0;

  /// One optimizer step of every layer of the stage that trains.
  virtual void update(const UpdateRule& rule) = 0;

  /// Sum over this iteration's backwards of the samples' losses divided by the mini-batch's loss_terms: [] float64, on
  /// the device. Undefined but on the last stage, and there where no backward has run.
  virtual at::Tensor loss() const = 0;

  /// Forward only, in evaluation mode, of a batch of samples, frozen layers as in forward(); `input` is undefined on
  /// the first stage. The last stage returns the model's answers on the host, as answers_of does.
  virtual at::Tensor evaluate(const MiniBatch& batch, at::Tensor input) = 0;
  virtual AnswerShape answer_shape() const = 0;
  /// The same of a token slice on the host, whose texts all have tokens in it. The last stage of a causal model returns
  /// the most likely token after each text's last one, on the host, [texts] int64.
  virtual at::Tensor next_tokens(const MicroBatch& /*slice*/, at::Tensor /*input*/) {
    FROSTPIPE_CHECK(false, "only a language model goes on with texts");
  }
};

/// What a rank trains: how a layer's state and a stage's compute are made.
class StageFactory {
 public:
  virtual ~StageFactory() = default;
  /// Weights uninitialised. `slice`: of what tensor ranks share of it.
  virtual LayerState make_layer(int layer, bool trains, const TensorSlice& slice) const = 0;
  /// Iterations of the phase may be captured as CUDA graphs: with samples of equal lengths, in the same order, its
  /// stages then do the same work on the same tensors.
  virtual bool can_capture(const Phase&) const { return false; }
  /// Stage `stage` of the phase; `layers` holds at least its layers and outlives it. `ranks`: that share the layers.
  virtual std::unique_ptr<StageCompute> make_stage(const Phase& phase, int stage, std::map<int, LayerState>& layers,
                                                   const TensorRanks& ranks) const = 0;
};

}  // namespace frostpipe
