#include "operators/nets/net_state.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <random>

#include "operators/nets/net_kernels.h"

namespace frostpipe {
namespace {

std::vector<std::int64_t> kernel_shape(const NetLayer& layer) {
  return {layer.out_channels, layer.in_channels / layer.groups, layer.kernel, layer.kernel};
}

std::int64_t kernel_size(const NetLayer& layer) { return num_weights(layer) - (layer.bias ? layer.out_channels : 0); }

template <class Distribution>
void fill(const at::Tensor& tensor, Distribution distribution, std::mt19937_64& random) {
  auto* const values = tensor.data_ptr<double>();
  for (std::int64_t i = 0; i < tensor.numel(); ++i) values[i] = distribution(random);
}

at::Tensor random_weights(const NetLayer& layer, std::uint64_t seed, int index) {
  std::seed_seq seeds{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                      static_cast<std::uint32_t>(index)};
  std::mt19937_64 random(seeds);
  auto weights = at::zeros({num_weights(layer)}, at::kDouble);
  if (is_linear(layer)) {
    const double most = 1 / std::sqrt(static_cast<double>(layer.in_channels));
    fill(weights, std::uniform_real_distribution<double>(-most, most), random);
  } else {
    const double outputs = static_cast<double>(layer.out_channels) * layer.kernel * layer.kernel / layer.groups;
    fill(weights.narrow(0, 0, kernel_size(layer)), std::normal_distribution<double>(0, std::sqrt(2 / outputs)), random);
  }
  return weights;
}

}  // namespace

at::Tensor kernel_of(const NetLayer& layer, const NetLayerState& state) {
  return state.weights.narrow(0, 0, kernel_size(layer)).view(kernel_shape(layer));
}

at::Tensor bias_of(const NetLayer& layer, const NetLayerState& state) {
  return layer.bias ? state.weights.narrow(0, kernel_size(layer), layer.out_channels) : at::Tensor();
}

NetState random_state(const NetShape& net, std::uint64_t seed, at::ScalarType type) {
  NetState state(net.layers.size());
  for (int i = 0; i < static_cast<int>(state.size()); ++i) {
    const NetLayer& layer = net.layers[i];
    if (!is_pooling(layer)) state[i].weights = random_weights(layer, seed, i).to(type);
    if (!layer.batch_norm) continue;
    state[i].norm = at::stack({at::ones({layer.out_channels}, type), at::zeros({layer.out_channels}, type)});
    state[i].running_mean = at::zeros({layer.out_channels}, type);
    state[i].running_variance = at::ones({layer.out_channels}, type);
  }
  return state;
}

NetState copy_of(const NetState& state) {
  NetState copy = state;
  for (auto& layer : copy)
    for (at::Tensor* tensor : {&layer.weights, &layer.norm, &layer.running_mean, &layer.running_variance})
      if (tensor->defined()) *tensor = tensor->clone();
  return copy;
}

}  // namespace frostpipe
