#include "operators/graph/net_shape.h"

#include <fmt/format.h>

#include <numeric>
#include <string_view>

#include "base/files.h"

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

std::string fingerprint(const NetShape& net) {
  std::string structure = fmt::format("{} {}\n", net.channels, net.picture_size);
  for (const NetLayer& layer : net.layers)
    structure +=
        fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}\n", layer.name, static_cast<int>(layer.kind),
                    layer.input, layer.addend.value_or(-1), layer.in_channels, layer.out_channels, layer.kernel,
                    layer.stride, layer.padding, layer.groups, layer.padding_after, layer.in_size, layer.out_size,
                    layer.batch_norm, layer.bias, layer.relu, layer.norm_epsilon, layer.relu_limit);
  return fingerprint(std::string_view(structure));
}

}  // namespace frostpipe
