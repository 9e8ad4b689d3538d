#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "operators/nets/net_state.h"

// What each operator of an iteration (operators/graph/operator_graph.h) computes, of some samples. Activations are
// [samples, channels, size, size]; a linear layer's output has one pixel. All are without autograd.

namespace frostpipe {

inline constexpr double kNormMomentum = 0.1;  // PyTorch's

/// A convolution of one pixel with a bias and without batch norm.
bool is_linear(const NetLayer& layer);

/// The convolution or linear layer, with the ReLU where no batch norm follows.
at::Tensor product(const NetLayer& layer, const NetLayerState& state, const at::Tensor& x);

/// `gradient` of the product's output, masked where it had a ReLU. [samples, in, size, size]
at::Tensor input_gradient(const NetLayer& layer, const NetLayerState& state, const at::Tensor& gradient);
/// Summed over the samples: [num_weights].
at::Tensor weight_gradient(const NetLayer& layer, const at::Tensor& x, const at::Tensor& gradient);

/// The gradient before the layer's ReLU, which gave `output`.
at::Tensor masked(const NetLayer& layer, const at::Tensor& gradient, const at::Tensor& output);

at::Tensor pool(const NetLayer& layer, const at::Tensor& x);
/// `x` is the input of a maximum, else needed for its shape alone and may be undefined.
at::Tensor pool_gradient(const NetLayer& layer, const at::Tensor& gradient, const at::Tensor& x);

/// A batch norm's values per channel.
struct NormStatistics {
  at::Tensor mean, variance;  // of all values, not their estimate for unseen ones
  std::int64_t count = 0;     // values per channel; 0 of running statistics
};

/// Mean and sum of squared distances from it, per channel, over samples and pixels: [2, channels].
at::Tensor partial_statistics(const at::Tensor& x);
/// Joins partial statistics in their order (Chan, Golub and LeVeque 1979). `counts` holds their values per channel.
NormStatistics merged(const std::vector<at::Tensor>& parts, const std::vector<std::int64_t>& counts);
NormStatistics running(const NetLayerState& state);

/// scale x (x - mean) / sqrt(variance + epsilon) + shift, plus `addend` if it is defined, then the layer's ReLU.
at::Tensor normalise(const NetLayer& layer, const NetLayerState& state, const NormStatistics& statistics,
                     const at::Tensor& x, const at::Tensor& addend);

/// The gradient before the ReLU of a batch norm without addend, whose output is computed again to the bit; with an
/// addend its sum_gradient has masked it.
at::Tensor before_relu(const NetLayer& layer, const NetLayerState& state, const NormStatistics& statistics,
                       const at::Tensor& x, const at::Tensor& gradient);

/// Sums over samples and pixels of the gradient and of its products with the normalised values: [2, channels]. The
/// gradients of shift and scale, in this order.
at::Tensor partial_norm_gradient(const NetLayer& layer, const NormStatistics& statistics, const at::Tensor& x,
                                 const at::Tensor& gradient);

/// Returns the gradient of the batch norm's input. `sums` is partial_norm_gradient summed over all samples.
at::Tensor normalise_gradient(const NetLayer& layer, const NetLayerState& state, const NormStatistics& statistics,
                              const at::Tensor& x, const at::Tensor& gradient, const at::Tensor& sums);

/// Moves the running statistics towards the mini-batch's by kNormMomentum, the variance as the estimate for unseen
/// values.
void update_running(NetLayerState& state, const NormStatistics& statistics);

/// Mean cross entropy's share of these samples, and its gradient of their scores; both divided by `batch`.
struct LossPart {
  double loss = 0;
  at::Tensor gradient;  // as the scores, [samples, classes, 1, 1]
};
LossPart cross_entropy(const at::Tensor& scores, const at::Tensor& labels, int batch);

/// The scores of pictures by running statistics: [samples, classes].
at::Tensor scores_of(const NetShape& net, const NetState& state, const at::Tensor& pictures);

}  // namespace frostpipe
