#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "operators/nets/net_state.h"

// The computations of the operators of an iteration (operators/graph/operator_graph.h), for some samples. Activations
// are [samples, channels, size, size]; a linear layer's output has one pixel. None of them uses autograd.

namespace frostpipe {

inline constexpr double kNormMomentum = 0.1;  // PyTorch's default

/// True for a 1 x 1 convolution with a bias and without batch norm.
bool is_linear(const NetLayer& layer);

/// Computes the convolution or linear layer, with the ReLU if no batch norm follows.
at::Tensor product(const NetLayer& layer, const NetLayerState& state, const at::Tensor& x);

/// Returns the gradient of the input, [samples, in, size, size]. `gradient` is that of the product's output, after
/// masked() if the product included a ReLU.
at::Tensor input_gradient(const NetLayer& layer, const NetLayerState& state, const at::Tensor& gradient);
/// Returns the gradient of the weights, summed over the samples: [num_weights].
at::Tensor weight_gradient(const NetLayer& layer, const at::Tensor& x, const at::Tensor& gradient);

/// Returns the gradient before the layer's ReLU, whose output was `output`.
at::Tensor masked(const NetLayer& layer, const at::Tensor& gradient, const at::Tensor& output);

at::Tensor pool(const NetLayer& layer, const at::Tensor& x);
/// Returns the gradient of a pooling's input. Max pooling needs the values of its input `x`, average pooling only the
/// shape.
at::Tensor pool_gradient(const NetLayer& layer, const at::Tensor& gradient, const at::Tensor& x);

/// A batch norm's values per channel.
struct NormStatistics {
  at::Tensor mean, variance;  // of the mini-batch's values (biased variance)
  std::int64_t count = 0;     // values per channel; 0 for running statistics
};

/// Returns per channel the mean over samples and pixels, and the sum of squared distances from it: [2, channels].
at::Tensor partial_statistics(const at::Tensor& x);
/// Joins partial statistics in their order (Chan, Golub and LeVeque 1979). `counts` holds their values per channel.
NormStatistics merged(const std::vector<at::Tensor>& parts, const std::vector<std::int64_t>& counts);
NormStatistics running(const NetLayerState& state);

/// Returns scale x (x - mean) / sqrt(variance + epsilon) + shift, plus `addend` if it is defined, then the layer's
/// ReLU.
at::Tensor normalise(const NetLayer& layer, const NetLayerState& state, const NormStatistics& statistics,
                     const at::Tensor& x, const at::Tensor& addend);

/// Returns the gradient before the ReLU of a batch norm without addend, whose output is recomputed bit for bit. With an
/// addend, the operator elementwise_gradient has already masked the gradient.
at::Tensor before_relu(const NetLayer& layer, const NetLayerState& state, const NormStatistics& statistics,
                       const at::Tensor& x, const at::Tensor& gradient);

/// Returns the sums over samples and pixels of the gradient, and of its products with the normalised values, which are
/// the gradients of shift and scale: [2, channels].
at::Tensor partial_norm_gradient(const NetLayer& layer, const NormStatistics& statistics, const at::Tensor& x,
                                 const at::Tensor& gradient);

/// Returns the gradient of the batch norm's input. `sums` is partial_norm_gradient summed over all samples.
at::Tensor normalise_gradient(const NetLayer& layer, const NetLayerState& state, const NormStatistics& statistics,
                              const at::Tensor& x, const at::Tensor& gradient, const at::Tensor& sums);

/// Moves the running statistics towards the mini-batch's by kNormMomentum, with the unbiased variance, as PyTorch does,
/// and counts the mini-batch.
void update_running(NetLayerState& state, const NormStatistics& statistics);

/// The contribution of some samples to the mean cross entropy of `batch` samples, and the gradient with respect to
/// their scores.
struct LossPart {
  double loss = 0;
  at::Tensor gradient;  // [samples, classes, 1, 1], like the scores
};
LossPart cross_entropy(const at::Tensor& scores, const at::Tensor& labels, int batch);

/// Returns the net's scores of pictures, [samples, classes]. Batch norms use their running statistics.
at::Tensor scores_of(const NetShape& net, const NetState& state, const at::Tensor& pictures);

}  // namespace frostpipe
