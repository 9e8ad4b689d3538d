#include "operators/nets/net_tensors.h"

#include "base/error.h"
#include "operators/nets/net_kernels.h"

namespace frostpipe {
std::vector<NetTensor> tensors_of(const NetShape& net, int index, TensorNaming naming) {
  using enum NetTensor::Part;
  const NetLayer& layer = net.layers[index];
  if (is_pooling(layer)) return {};
  const auto [product, norm, stored_pixels] = naming(net, index);
  const int pixels = is_linear(layer) ? stored_pixels : layer.kernel;
  std::vector<std::int64_t> shape = {layer.out_channels, layer.in_channels / layer.groups};
  if (is_linear(layer) && pixels > 0) shape[1] /= pixels * pixels;
  if (pixels > 0) shape.insert(shape.end(), {pixels, pixels});
  std::vector<NetTensor> tensors = {{product + "weight", shape, kernel}};
  const std::vector<std::int64_t> channels = {layer.out_channels};
  if (layer.bias) tensors.push_back({product + "bias", channels, bias});
  if (!layer.batch_norm) return tensors;
  tensors.push_back({norm + "weight", channels, scale});
  tensors.push_back({norm + "bias", channels, shift});
  tensors.push_back({norm + "running_mean", channels, running_mean});
  tensors.push_back({norm + "running_var", channels, running_variance});
  tensors.push_back({norm + "num_batches_tracked", {}, num_batches});
  return tensors;
}

at::Tensor values_of(const NetLayer& layer, const NetLayerState& state, const NetTensor& tensor) {
  using enum NetTensor::Part;
  switch (tensor.part) {
    case kernel:
      return kernel_of(layer, state).view(tensor.shape);
    case bias:
      return bias_of(layer, state);
    case scale:
      return state.norm[0];
    case shift:
      return state.norm[1];
    case running_mean:
      return state.running_mean;
    case running_variance:
      return state.running_variance;
    case num_batches:
      break;
  }
  FROSTPIPE_CHECK(false, "a count is no tensor of floats");
}

}  // namespace frostpipe
