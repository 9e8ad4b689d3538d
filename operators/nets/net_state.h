#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "operators/graph/net_shape.h"

namespace frostpipe {

/// A layer's parameters, flat, so that an update can be split over devices, and its batch norm's running statistics.
/// Tensors that the layer does not have are undefined.
struct NetLayerState {
  at::Tensor weights;  // [num_weights]: kernel [out, in / groups, kernel, kernel], then bias [out]
  at::Tensor norm;     // [2, out]: scale, shift
  at::Tensor running_mean, running_variance;  // [out]
  std::int64_t num_batches = 0;
};

/// The states of all layers, by layer.
using NetState = std::vector<NetLayerState>;

/// Returns the kernel as a view [out, in / groups, kernel, kernel].
at::Tensor kernel_of(const NetLayer& layer, const NetLayerState& state);
/// Returns the bias as a view [out]; undefined if the layer has none.
at::Tensor bias_of(const NetLayer& layer, const NetLayerState& state);

/// Initializes a net as transformers initializes a ResNet: kernels from a normal distribution with the standard
/// deviation sqrt(2 x groups / (out x kernel^2)) (He et al. 2015, mode fan_out) and their biases with 0, linear layers
/// uniformly within +-1 / sqrt(in), batch norms with scale 1 and shift 0. A layer's values depend on the seed and on
/// the layer's index and shape alone.
NetState random_state(const NetShape& net, std::uint64_t seed, at::ScalarType type);

/// Returns a deep copy.
NetState copy_of(const NetState& state);

}  // namespace frostpipe
