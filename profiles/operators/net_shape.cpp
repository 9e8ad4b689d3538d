#include "profiles/operators/net_shape.h"

#include <numeric>

namespace frostpipe {
namespace {

template <class Count>
std::int64_t sum_over(const NetShape& net, Count count) {
  return std::accumulate(net.layers.begin(), net.layers.end(), std::int64_t{0},
                         [&](std::int64_t sum, const NetLayer& layer) { return sum + count(layer); });
}

std::int64_t num_kernel_weights(const NetLayer& layer) {
  if (is_pooling(layer)) return 0;
  return std::int64_t{layer.out_channels} * (layer.in_channels / layer.groups) * layer.kernel * layer.kernel;
}

}  // namespace

bool is_pooling(const NetLayer& layer) { return layer.kind != NetLayer::Kind::convolution; }

std::int64_t num_weights(const NetLayer& layer) {
  return num_kernel_weights(layer) + (layer.bias ? layer.out_channels : 0);
}

std::int64_t num_parameters(const NetLayer& layer) {
  return num_weights(layer) + (layer.batch_norm ? 2 * layer.out_channels : 0);
}

std::int64_t num_parameters(const NetShape& net) {
  return sum_over(net, [](const NetLayer& layer) { return num_parameters(layer); });
}

std::int64_t multiply_adds(const NetLayer& layer) {
  return num_kernel_weights(layer) * layer.out_size * layer.out_size;
}

std::int64_t multiply_adds(const NetShape& net) {
  return sum_over(net, [](const NetLayer& layer) { return multiply_adds(layer); });
}

}  // namespace frostpipe
