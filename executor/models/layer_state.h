#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "executor/models/parameter.h"
#include "executor/optimizer/parameter_update.h"
#include "plan/layout.h"
#include "profiles/dtype.h"
#include "profiles/transformer/parameters.h"

namespace frostpipe {

/// Another version of a layer's weights, in the same layout.
struct WeightVersion {
  at::Tensor weights;  // [n]; undefined if there is none
  at::Tensor rounded;
  std::vector<Parameter> parameters;
};

/// Values [begin, begin + count) of a flat buffer.
struct FlatRange {
  std::int64_t begin = 0, count = 0;
};

/// Everything that a rank holds of one layer. Each kind of values is in one flat buffer, so that a reduction, an update
/// or a transfer to another rank is one operation. `parameters` are views of `weights` with the shapes of
/// parameters_of(), cut to `slice`; projection matrices are views of `rounded` if the layer computes in another dtype
/// than that of its weights. While the layer trains, their gradients are views of `gradients`.
struct LayerState {
  at::Tensor weights;            // [n]
  at::Tensor gradients;          // [n]; undefined while frozen
  Moments moments;               // undefined while frozen
  std::int64_t num_decayed = 0;  // number of leading values with weight decay
  at::Tensor rounded;  // projection matrices in the compute dtype, see round_weights(); undefined if that is the
                       // weights' dtype
  std::vector<Parameter> parameters;
  /// With updates delayed by one step: the version before the last update, with which an iteration computes gradients.
  /// Its parameters' gradients are views of the same `gradients`.
  WeightVersion older;
  std::vector<ParameterSpec> whole;  // the layer's whole parameters, before division among tensor ranks
  TensorSlice slice;                 // the slice of the divided parameters that this rank has, see shards.h
  std::vector<FlatRange> shared;     // ranges of this slice's values; all others are the same on every tensor rank
  bool trains() const { return gradients.defined(); }
};

/// The moments of a frozen layer and the weights that belong to them, kept in host memory so that device memory is free
/// and nothing is lost. On a CPU they are the layer's own tensors, and the moments no longer count as device memory.
struct OffloadedMoments {
  Moments moments;
  at::Tensor weights;
  std::vector<ParameterSpec> whole;  // see LayerState
  TensorSlice slice;
};

/// The dtypes of a layer's tensors.
struct LayerTypes {
  at::ScalarType kept;               // weights, gradients, moments
  at::ScalarType computed;           // of projection matrices and activations
  at::ScalarType frozen = computed;  // the same, in frozen layers
};

/// Returns the dtypes for computing in `dtype`. For bfloat16, weights are kept in float32. `frozen_dtype` is for frozen
/// layers; if not set, they are like the others.
LayerTypes layer_types_of(DType dtype, std::optional<DType> frozen_dtype = std::nullopt);

/// Allocates this rank's `slice` of a layer with the parameters `whole`, to compute in `types.computed`. Weights are
/// uninitialized. If the layer trains, its gradients and `num_moments` moments (optimizer_moments()) are zero.
LayerState make_layer_state(const std::vector<ParameterSpec>& whole, const LayerTypes& types, const at::Device& device,
                            bool trains, int num_moments, const TensorSlice& slice = {});

/// Makes the projections of a frozen layer compute in `type` from now on, and rounds its matrices.
void compute_in(LayerState& state, at::ScalarType type);

/// Delays updates by one step from now on; both versions of the weights are equal at first. The layer must train.
void keep_older_weights(LayerState& state);

/// Updates `rounded` of both versions. Must be called after weights have changed.
void round_weights(LayerState& state);

/// Returns the parameters for forward and backward: the older ones if they exist.
inline const std::vector<Parameter>& used_parameters(const LayerState& state) {
  return state.older.weights.defined() ? state.older.parameters : state.parameters;
}

/// Returns the parameters in the dtype in which they are kept, with the shapes of this rank's part.
std::vector<at::Tensor> kept_parameters(const LayerState& state);

/// Releases gradients and older weights, and returns the moments.
OffloadedMoments freeze(LayerState& state);

/// Performs one optimizer step of trainable layers of one dtype and device, starting from their newest weights, which
/// become the older ones if updates are delayed. Does not clear gradients (TouchedGradients does).
void update(const std::vector<LayerState*>& layers, const UpdateRule& rule);

/// Returns the ranges of values that are the same on every tensor rank: all but `shared`.
std::vector<FlatRange> whole_ranges(const LayerState& state);

/// Returns the sum of squares of `values`, [n]; 2^31 values and more, which a GPU's dot product refuses, in pieces. []
/// float64, on their device
at::Tensor square_sum_of(const at::Tensor& values);

/// Returns the sum of squares of the gradients that only this tensor rank has. [] float64, on their device
at::Tensor shared_square_sum(const LayerState& state);

/// The gradients of a layer that may be nonzero: all of them, or if only some rows of the first parameter, an embedding
/// table, were looked up, those of these rows and of all other parameters.
class TouchedGradients {
 public:
  /// `rows` are the rows that were looked up, int64, ascending and unique; undefined: all rows. Copies their gradients.
  TouchedGradients(const LayerState& state, at::Tensor rows);
  /// Returns one-dimensional contiguous tensors, which may be changed in place.
  const std::vector<at::Tensor>& tensors() const { return tensors_; }
  /// Copies the rows back to the layer, after tensors() have been changed.
  void write_back() const;
  /// Returns the sum of squares, accumulated in the gradients' precision. [] float64, on their device
  at::Tensor square_sum() const;
  /// Sets these gradients of the layer to zero.
  void clear() const;

 private:
  at::Tensor table_, rows_;
  std::vector<at::Tensor> tensors_;  // the copied rows first
};

}  // namespace frostpipe
