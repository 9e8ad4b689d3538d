#pragma once
#include <string>
#include <vector>

#include "operators/nets/net_families.h"
#include "operators/nets/net_state.h"

namespace frostpipe {

/// A tensor of a layer: its name in a file, and its part of the layer's state.
struct NetTensor {
  enum class Part { kernel, bias, scale, shift, running_mean, running_variance, num_batches };
  std::string name;
  std::vector<std::int64_t> shape;
  Part part = Part::kernel;
};

/// Returns the tensors of a layer of a family's net; pooling has none.
std::vector<NetTensor> tensors_of(const NetShape& net, int layer, TensorNaming naming);

/// Returns the values of a tensor of floats as a view in its shape.
at::Tensor values_of(const NetLayer& layer, const NetLayerState& state, const NetTensor& tensor);

/// Returns whether a file may lack the tensor: older files have no count of batches.
inline bool may_be_missing(const NetTensor& tensor) { return tensor.part == NetTensor::Part::num_batches; }

}  // namespace frostpipe
