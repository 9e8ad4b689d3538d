#pragma once
#include <ATen/core/Tensor.h>

#include <compare>
#include <map>
#include <memory>

#include "base/error.h"
#include "executor/communication/tensor_parallel.h"
#include "executor/loading/samples.h"
#include "executor/models/layer_state.h"
#include "executor/models/task.h"
#include "plan/action.h"
#include "plan/batch.h"
#include "plan/plan.h"

namespace frostpipe {

/// The object of a compute action: a micro-batch, or a token slice of it.
struct Part {
  int micro_batch = 0;
  int slice = 0;
  auto operator<=>(const Part&) const = default;
};

/// Returns the part of an action that has a micro-batch.
inline Part part_of(const Action& action) { return {*action.micro_batch, action.slice.value_or(0)}; }

/// The computation of a stage on one rank, without messages: F, B, I, W, CACHE_READ, CACHE_WRITE and the update.
/// ScheduleRunner calls it in the schedule's order.
class StageCompute {
 public:
  virtual ~StageCompute() = default;

  /// Makes an uninitialized packed activation for `tokens` tokens, or for this rank's part of them, as exchanged
  /// between stages.
  virtual at::Tensor make_activation(std::int64_t tokens) const = 0;

  /// Called before the first action of an iteration. `share` is this replica's part of `batch`; `next_share` is that of
  /// `next`, the mini-batch to read ahead, which is null at the end of the run and if iterations overlap. Both
  /// mini-batches must outlive the iteration.
  virtual void begin_iteration(const MiniBatch& batch, SampleRange share, const MiniBatch* next,
                               SampleRange next_share) = 0;
  /// Called after begin_iteration() if another iteration is in progress: this one uses the newest weights, which become
  /// the older ones when the other ends.
  virtual void use_newest_weights() {}

  /// Gets the cached activations of the micro-batch. Called before each of its token slices; only the first call has an
  /// effect.
  virtual void cache_read(int micro_batch, SampleRange range) = 0;
  /// Runs F of a micro-batch (samples `range` of the mini-batch) or of one of its token slices. `input` is undefined on
  /// the first stage. Returns the activation to send; undefined on the last stage.
  virtual at::Tensor forward(Part part, SampleRange range, at::Tensor input) = 0;
  /// True if cache_write() would store anything, for which activations are copied from the device.
  virtual bool has_to_write(int /*micro_batch*/, SampleRange /*range*/) const { return true; }
  /// Stores the micro-batch's activations at the frozen boundary. Called after each of its token slices; only the last
  /// call has an effect.
  virtual void cache_write(int micro_batch, SampleRange range) = 0;
  /// Runs B. `gradient` is that of the output, undefined on the last stage, which adds its loss to loss(). Returns the
  /// gradient of the input; undefined unless the previous stage trains.
  virtual at::Tensor backward(Part part, at::Tensor gradient) = 0;
  /// Runs I, in place of B: does the same, but leaves out the gradients of weight matrices and tables.
  virtual at::Tensor input_gradient(Part part, at::Tensor gradient) = 0;
  /// Runs W: computes the gradients that I has left out, from the tensors that it has kept.
  virtual void weight_gradient(Part part) = 0;
  /// Returns the rows of the embedding table that the tokens of this mini-batch look up, over all replicas, as indices
  /// of the rank's own rows; all others have zero gradients. [rows] int64, ascending and unique; may be empty on a
  /// tensor rank; undefined: any row may have a gradient.
  virtual at::Tensor looked_up_rows() const = 0;

  /// Performs one optimizer step of every trainable layer of the stage.
  virtual void update(const UpdateRule& rule) = 0;

  /// Returns the loss of this iteration's backwards so far: the sum of the samples' losses divided by the mini-batch's
  /// loss_terms, [] float64 on the device. Undefined on other stages than the last, and before the first backward.
  virtual at::Tensor loss() const = 0;

  /// Runs the forward of a batch of samples in evaluation mode; frozen layers run as in forward(). `input` is undefined
  /// on the first stage. The last stage returns the model's answers on the host, as answers_of() does.
  virtual at::Tensor evaluate(const MiniBatch& batch, at::Tensor input) = 0;
  virtual AnswerShape answer_shape() const = 0;
  /// Does the same as evaluate() for a token slice on the host, in which every text has tokens. The last stage of a
  /// causal model returns the most likely token after the last one of each text, on the host, [texts] int64.
  virtual at::Tensor next_tokens(const MicroBatch& /*slice*/, at::Tensor /*input*/) {
    FROSTPIPE_CHECK(false, "only a language model goes on with texts");
  }
};

/// Makes the layers and stages of a run.
class StageFactory {
 public:
  virtual ~StageFactory() = default;
  /// Makes a layer with uninitialized weights. `slice` is this rank's part of the parameters that tensor ranks divide.
  virtual LayerState make_layer(int layer, bool trains, const TensorSlice& slice) const = 0;
  /// True if iterations of the phase may be captured as CUDA graphs: with samples of equal lengths in the same order,
  /// its stages do the same work on the same tensors.
  virtual bool can_capture(const Phase&) const { return false; }
  /// Makes stage `stage` of the phase. `layers` has at least its layers and must outlive it. `ranks` are the tensor
  /// ranks.
  virtual std::unique_ptr<StageCompute> make_stage(const Phase& phase, int stage, std::map<int, LayerState>& layers,
                                                   const TensorRanks& ranks) const = 0;
};

}  // namespace frostpipe
