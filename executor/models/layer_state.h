#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "executor/models/transformer.h"
#include "plan/layout.h"
#include "profiles/dtype.h"
#include "profiles/optimizer.h"

namespace frostpipe {

/// Another version of a layer's weights, laid out as the layer's own.
struct WeightVersion {
  at::Tensor weights;  // [n]; undefined where there is no such version
  at::Tensor rounded;
  std::vector<Parameter> parameters;
};

/// Values [begin, begin + count) of a flat buffer.
struct FlatRange {
  std::int64_t begin = 0, count = 0;
};

/// Everything a rank holds of one layer, each in one flat buffer so that a reduction, an update or a move to another
/// rank is one operation. `parameters` are views of `weights` in parameters_of's shapes, or of `rounded` for matrices
/// of projections where the layer computes in another type than its weights are kept in; while the layer trains, their
/// gradients are views of `gradients`.
struct LayerState {
  at::Tensor weights;                      // [n]
  at::Tensor gradients;                    // [n]; undefined while frozen
  at::Tensor first_moment, second_moment;  // [n]; undefined while frozen, and for SGD
  std::int64_t num_decayed = 0;            // the leading values that get weight decay
  at::Tensor rounded;  // projections' matrices in the compute type, see round_weights; undefined where that is the
                       // weights' own
  std::vector<Parameter> parameters;
  /// Where updates are delayed by one: the version before the last update, which an iteration computes its gradients
  /// with. They are views of the same `gradients`.
  WeightVersion older;
  std::vector<ParameterSpec> whole;  // the layer's parameters before tensor ranks share them
  TensorSlice slice;                 // the part of what they share that is here, see shards.h
  std::vector<FlatRange> shared;     // that part; all other values are the same on every tensor rank
  bool trains() const { return gradients.defined(); }
};

/// Moments of a layer that froze, and the weights that belong to them: kept in host memory, so that nothing is lost and
/// the device's memory is free. On a CPU they are the layer's own tensors, of which the moments no longer count as the
/// device's memory.
struct OffloadedMoments {
  at::Tensor first_moment, second_moment;
  at::Tensor weights;
  std::vector<ParameterSpec> whole;  // as the layer's
  TensorSlice slice;
};

/// Types of a layer's tensors.
struct LayerTypes {
  at::ScalarType kept;               // weights, gradients, moments
  at::ScalarType computed;           // what projections multiply with, and activations
  at::ScalarType frozen = computed;  // the same within frozen layers that follow each other
};

/// bfloat16 keeps weights in float32. `frozen_dtype`: of frozen layers; none: as the others.
LayerTypes layer_types_of(DType dtype, std::optional<DType> frozen_dtype = std::nullopt);

/// Weights uninitialised, gradients and moments zero (moments only for AdamW). `whole`: the layer's parameters, of
/// which the rank holds `slice`.
LayerState make_layer_state(const std::vector<ParameterSpec>& whole, const LayerTypes& types, const at::Device& device,
                            bool trains, int num_moments, const TensorSlice& slice = {});

/// From now on the projections of a frozen layer multiply in `type`, with matrices rounded now.
void compute_in(LayerState& state, at::ScalarType type);

/// From now on updates are delayed by one; both versions of the weights are equal at first.
void keep_older_weights(LayerState& state);

/// Brings `rounded` of both versions up to date; whoever has changed weights calls it.
void round_weights(LayerState& state);

/// What an iteration computes with: the older weights where there are such.
inline const std::vector<Parameter>& used_parameters(const LayerState& state) {
  return state.older.weights.defined() ? state.older.parameters : state.parameters;
}

/// Parameters as they are kept, in the shapes of what is here of them.
std::vector<at::Tensor> kept_parameters(const LayerState& state);

/// Drops gradients and the older weights, and returns the moments.
OffloadedMoments freeze(LayerState& state);

struct UpdateRule {
  Optimizer optimizer = Optimizer::kAdamW;
  double learning_rate = 1e-4;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0.01;
  std::int64_t step = 1;  // 1 for the first update
  /// By which gradients are divided first: clipping. On their device, of the weights' type, with one value; undefined:
  /// by nothing.
  at::Tensor gradient_divisor = {};
  /// learning_rate and step, [2] float32 on their device, in place of the numbers above; undefined: these count. For
  /// updates that are captured once and replayed with other values. AdamW alone.
  at::Tensor rate_and_step = {};
};

/// One optimizer step of trainable layers of one type and device, from their newest weights; those they keep as the
/// older ones where there are such. Gradients stay for the caller to clear (TouchedGradients). The host does not wait.
void update(const std::vector<LayerState*>& layers, const UpdateRule& rule);

/// The values that are the same on every tensor rank: those that are not `shared`.
std::vector<FlatRange> whole_ranges(const LayerState& state);

/// Sum of squares of the gradients that only this tensor rank has. [] float64, on their device
at::Tensor shared_square_sum(const LayerState& state);

/// What of a layer's gradients may differ from zero: everything, or of its first parameter, a table, these rows alone.
class TouchedGradients {
 public:
  /// `rows`: int64, ascending, each once; undefined: everything. The rows are copied.
  TouchedGradients(const LayerState& state, at::Tensor rows);
  /// Contiguous, to be changed in place.
  const std::vector<at::Tensor>& tensors() const { return tensors_; }
  /// Writes the copied rows back.
  void put_back() const;
  /// Sum of squares, accumulated in the gradients' own precision. [] float64, on their device
  at::Tensor square_sum() const;
  /// Sets them to zero in the layer.
  void clear() const;

 private:
  at::Tensor table_, rows_;
  std::vector<at::Tensor> tensors_;  // the copied rows first
};

}  // namespace frostpipe
