#include "operators/nets/net_kernels.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_adaptive_avg_pool2d.h>
#include <ATen/ops/_adaptive_avg_pool2d_backward.h>
#include <ATen/ops/batch_norm_update_stats.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/hardtanh_backward.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/max_pool2d_with_indices.h>
#include <ATen/ops/max_pool2d_with_indices_backward.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/threshold_backward.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace frostpipe {
namespace {

std::vector<std::int64_t> twice(int value) { return {value, value}; }

at::Tensor per_channel(const at::Tensor& values) { return values.view({1, -1, 1, 1}); }

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_gradients(const NetLayer& layer, const at::Tensor& gradient,
                                                                     const at::Tensor& x, const at::Tensor& kernel,
                                                                     std::array<bool, 3> wanted) {
  return at::convolution_backward(gradient, x, kernel, std::vector<std::int64_t>{layer.out_channels},
                                  twice(layer.stride), twice(layer.padding), twice(1), false, twice(0), layer.groups,
                                  wanted);
}

at::Tensor padded_after(const NetLayer& layer, const at::Tensor& x) {
  return layer.padding_after > 0 ? at::constant_pad_nd(x, {0, layer.padding_after, 0, layer.padding_after}) : x;
}

bool has_limit(const NetLayer& layer) { return std::isfinite(layer.relu_limit); }

at::Tensor relu_in_place(const NetLayer& layer, at::Tensor x) {
  return has_limit(layer) ? x.clamp_(0, layer.relu_limit) : x.relu_();
}

at::Tensor inverse_deviation(const NetLayer& layer, const NormStatistics& statistics) {
  return (statistics.variance + layer.norm_epsilon).rsqrt();
}

/// Returns scale x (x - mean) / sqrt(variance + epsilon) + shift, per channel, in one pass.
at::Tensor affine(const NetLayer& layer, const NormStatistics& statistics, const at::Tensor& x, const at::Tensor& scale,
                  const at::Tensor& shift) {
  return std::get<0>(at::native_batch_norm(x, scale, shift, statistics.mean, statistics.variance, /*training=*/false,
                                           /*momentum=*/0, layer.norm_epsilon));
}

at::Tensor scaled(const NetLayer& layer, const NetLayerState& state, const NormStatistics& statistics,
                  const at::Tensor& x) {
  return affine(layer, statistics, x, state.norm[0], state.norm[1]);
}

at::Tensor rows_of(const at::Tensor& x) { return x.reshape({x.size(0), -1}); }

/// Returns whether the layer can be computed as one matrix product, since its output has one pixel. It is then a linear
/// layer of the input's pixels under the kernel, the first num_seen() of each side; the rest of the kernel lies on
/// padding. LibTorch's convolutions multiply the padding too, and their weight gradients of such layers take ten times
/// as long as their forwards.
bool is_one_product(const NetLayer& layer) {
  return layer.out_size == 1 && layer.groups == 1 && layer.padding_after == 0;
}

int num_seen(const NetLayer& layer) { return std::min(layer.kernel - layer.padding, layer.in_size); }

/// Returns a view of the part of a kernel [out, in, kernel, kernel] that does not lie on padding.
at::Tensor seeing_part(const NetLayer& layer, const at::Tensor& kernel) {
  const int seen = num_seen(layer);
  return seen == layer.kernel ? kernel : kernel.narrow(2, layer.padding, seen).narrow(3, layer.padding, seen);
}

/// Returns a view of the pixels of an input [samples, in, size, size] that lie under the kernel; all of them for a
/// linear layer.
at::Tensor seen_part(const NetLayer& layer, const at::Tensor& x) {
  const int seen = num_seen(layer);
  return seen == layer.in_size ? x : x.narrow(2, 0, seen).narrow(3, 0, seen);
}

}  // namespace

bool is_linear(const NetLayer& layer) {
  return layer.kernel == 1 && layer.in_size == 1 && layer.out_size == 1 && layer.bias && !layer.batch_norm;
}

at::Tensor product(const NetLayer& layer, const NetLayerState& state, const at::Tensor& x) {
  const auto kernel = kernel_of(layer, state), bias = bias_of(layer, state);
  const auto held = bias.defined() ? std::optional(bias) : std::nullopt;
  at::Tensor output;
  if (is_one_product(layer)) {
    output = at::linear(rows_of(seen_part(layer, x)), rows_of(seeing_part(layer, kernel)), held)
                 .view({x.size(0), layer.out_channels, 1, 1});
  } else {
    output = at::convolution(padded_after(layer, x), kernel, held, twice(layer.stride), twice(layer.padding), twice(1),
                             false, twice(0), layer.groups);
  }
  return layer.relu && !layer.batch_norm ? relu_in_place(layer, output) : output;
}

at::Tensor input_gradient(const NetLayer& layer, const NetLayerState& state, const at::Tensor& gradient) {
  const auto kernel = kernel_of(layer, state);
  if (is_one_product(layer)) {
    const int seen = num_seen(layer);
    const auto of_seen =
        at::mm(rows_of(gradient), rows_of(seeing_part(layer, kernel))).view({-1, layer.in_channels, seen, seen});
    if (seen == layer.in_size) return of_seen;
    const int unseen = layer.in_size - seen;
    return at::constant_pad_nd(of_seen, {0, unseen, 0, unseen});
  }
  const int size = layer.in_size + layer.padding_after;
  const auto shape = at::empty({gradient.size(0), layer.in_channels, size, size}, gradient.options());
  const auto of_padded = std::get<0>(convolution_gradients(layer, gradient, shape, kernel, {true, false, false}));
  if (layer.padding_after == 0) return of_padded;
  return of_padded.narrow(2, 0, layer.in_size).narrow(3, 0, layer.in_size).contiguous();
}

at::Tensor weight_gradient(const NetLayer& layer, const at::Tensor& x, const at::Tensor& gradient) {
  at::Tensor of_kernel, of_bias;
  if (is_one_product(layer)) {
    const int seen = num_seen(layer);
    of_kernel = at::mm(rows_of(gradient).t(), rows_of(seen_part(layer, x)))
                    .view({layer.out_channels, layer.in_channels, seen, seen});
    if (const int after = layer.kernel - layer.padding - seen; seen < layer.kernel)
      of_kernel = at::constant_pad_nd(of_kernel, {layer.padding, after, layer.padding, after});
    if (layer.bias) of_bias = rows_of(gradient).sum(0);
  } else {
    const auto shape =
        at::empty({layer.out_channels, layer.in_channels / layer.groups, layer.kernel, layer.kernel}, x.options());
    const auto gradients =
        convolution_gradients(layer, gradient, padded_after(layer, x), shape, {false, true, layer.bias});
    of_kernel = std::get<1>(gradients);
    of_bias = std::get<2>(gradients);
  }
  return layer.bias ? at::cat({of_kernel.reshape(-1), of_bias}) : of_kernel.reshape(-1);
}

at::Tensor masked(const NetLayer& layer, const at::Tensor& gradient, const at::Tensor& output) {
  return has_limit(layer) ? at::hardtanh_backward(gradient, output, 0, layer.relu_limit)
                          : at::threshold_backward(gradient, output, 0);
}

at::Tensor pool(const NetLayer& layer, const at::Tensor& x) {
  if (layer.kind == NetLayer::Kind::max_pooling)
    return std::get<0>(
        at::max_pool2d_with_indices(x, twice(layer.kernel), twice(layer.stride), twice(layer.padding), twice(1)));
  return at::_adaptive_avg_pool2d(x, twice(layer.out_size));
}

at::Tensor pool_gradient(const NetLayer& layer, const at::Tensor& gradient, const at::Tensor& x) {
  if (layer.kind == NetLayer::Kind::max_pooling) {
    const auto places = std::get<1>(
        at::max_pool2d_with_indices(x, twice(layer.kernel), twice(layer.stride), twice(layer.padding), twice(1)));
    return at::max_pool2d_with_indices_backward(gradient, x, twice(layer.kernel), twice(layer.stride),
                                                twice(layer.padding), twice(1), false, places);
  }
  const auto shape = at::empty({gradient.size(0), layer.in_channels, layer.in_size, layer.in_size}, gradient.options());
  return at::_adaptive_avg_pool2d_backward(gradient, shape);
}

at::Tensor partial_statistics(const at::Tensor& x) {
  const auto [mean, variance] = at::batch_norm_update_stats(x, {}, {}, /*momentum=*/0);
  return at::stack({mean, variance * (x.numel() / x.size(1))});
}

NormStatistics merged(const std::vector<at::Tensor>& parts, const std::vector<std::int64_t>& counts) {
  auto mean = parts.front()[0].clone(), squares = parts.front()[1].clone();
  std::int64_t count = counts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const auto distance = parts[i][0] - mean;
    const double both = static_cast<double>(count + counts[i]), part = static_cast<double>(counts[i]);
    mean += distance * (part / both);
    squares += parts[i][1] + distance.square() * (static_cast<double>(count) * part / both);
    count += counts[i];
  }
  return {.mean = mean, .variance = squares / count, .count = count};
}

NormStatistics running(const NetLayerState& state) {
  return {.mean = state.running_mean, .variance = state.running_variance};
}

at::Tensor normalise(const NetLayer& layer, const NetLayerState& state, const NormStatistics& statistics,
                     const at::Tensor& x, const at::Tensor& addend) {
  auto output = scaled(layer, state, statistics, x);
  if (addend.defined()) output += addend;
  return layer.relu ? relu_in_place(layer, output) : output;
}

at::Tensor before_relu(const NetLayer& layer, const NetLayerState& state, const NormStatistics& statistics,
                       const at::Tensor& x, const at::Tensor& gradient) {
  return layer.relu && !layer.addend ? masked(layer, gradient, scaled(layer, state, statistics, x)) : gradient;
}

at::Tensor partial_norm_gradient(const NetLayer& layer, const NormStatistics& statistics, const at::Tensor& x,
                                 const at::Tensor& gradient) {
  const auto [none, of_scale, of_shift] = at::native_batch_norm_backward(
      gradient, x, at::ones_like(statistics.mean), {}, {}, statistics.mean, inverse_deviation(layer, statistics),
      /*train=*/true, layer.norm_epsilon, {false, true, true});
  return at::stack({of_shift, of_scale});
}

at::Tensor normalise_gradient(const NetLayer& layer, const NetLayerState& state, const NormStatistics& statistics,
                              const at::Tensor& x, const at::Tensor& gradient, const at::Tensor& sums) {
  const auto factor = state.norm[0] * inverse_deviation(layer, statistics);
  const auto share = factor / -statistics.count;
  return affine(layer, statistics, x, sums[1] * share, sums[0] * share).addcmul_(gradient, per_channel(factor));
}

void update_running(NetLayerState& state, const NormStatistics& statistics) {
  const double count = static_cast<double>(statistics.count);
  const auto unbiased = statistics.variance * (count / std::max(1.0, count - 1));
  state.running_mean += kNormMomentum * (statistics.mean - state.running_mean);
  state.running_variance += kNormMomentum * (unbiased - state.running_variance);
  ++state.num_batches;
}

LossPart cross_entropy(const at::Tensor& scores, const at::Tensor& labels, int batch) {
  const auto logarithms = at::log_softmax(rows_of(scores), 1);
  const auto places = labels.view({-1, 1});
  auto gradient = logarithms.exp();
  gradient.scatter_add_(1, places, at::empty_like(places, gradient.options()).fill_(-1));
  return {.loss = -logarithms.gather(1, places).sum().item<double>() / batch,
          .gradient = (gradient / batch).view(scores.sizes())};
}

at::Tensor scores_of(const NetShape& net, const NetState& state, const at::Tensor& pictures) {
  const int num_layers = static_cast<int>(net.layers.size());
  std::vector<int> last_reader(num_layers, num_layers);
  for (int i = 0; i < num_layers; ++i) {
    if (net.layers[i].input >= 0) last_reader[net.layers[i].input] = i;
    if (net.layers[i].addend) last_reader[*net.layers[i].addend] = i;
  }
  std::vector<at::Tensor> outputs(num_layers);  // each is freed after its last reader
  for (int i = 0; i < num_layers; ++i) {
    const NetLayer& layer = net.layers[i];
    const at::Tensor x = layer.input < 0 ? pictures : outputs[layer.input];
    outputs[i] = is_pooling(layer) ? pool(layer, x) : product(layer, state[i], x);
    if (layer.batch_norm)
      outputs[i] = normalise(layer, state[i], running(state[i]), outputs[i],
                             layer.addend ? outputs[*layer.addend] : at::Tensor());
    for (int read = 0; read < i; ++read)
      if (last_reader[read] == i) outputs[read].reset();
  }
  return rows_of(outputs.back());
}

}  // namespace frostpipe
