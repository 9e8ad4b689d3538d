#include "tests/operators/executor/reference_net.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

namespace frostpipe::test {
namespace {

using Sizes = std::vector<std::int64_t>;

at::Tensor leaf_of(const at::Tensor& values, bool trains) {
  return values.defined() ? values.detach().clone().set_requires_grad(trains) : values;
}

void sgd(at::Tensor values, const at::Tensor& gradient, at::Tensor momentum, const UpdateRule& options) {
  momentum.mul_(options.momentum).add_(gradient + options.weight_decay * values);
  values.sub_(options.learning_rate * momentum);
}

}  // namespace

ReferenceNet::ReferenceNet(NetShape net, const NetState& state, int frozen_layers)
    : net_(std::move(net)), state_(copy_of(state)), momentum_(no_momentum(state)), frozen_layers_(frozen_layers) {}

at::Tensor ReferenceNet::scores(const at::Tensor& pictures, std::vector<NetLayerState>& leaves) {
  std::vector<at::Tensor> outputs;
  for (int i = 0; i < static_cast<int>(net_.layers.size()); ++i) {
    const NetLayer& layer = net_.layers[i];
    at::Tensor x = layer.input < 0 ? pictures : outputs[layer.input];
    const Sizes kernel = {layer.kernel, layer.kernel}, stride = {layer.stride, layer.stride},
                padding = {layer.padding, layer.padding};
    if (layer.kind == NetLayer::Kind::max_pooling) {
      x = at::max_pool2d(x, kernel, stride, padding);
    } else if (layer.kind == NetLayer::Kind::average_pooling) {
      x = at::adaptive_avg_pool2d(x, Sizes{layer.out_size, layer.out_size});
    } else {
      if (layer.in_size == 1) x = x.reshape({x.size(0), -1, 1, 1});
      x = at::pad(x, Sizes{0, layer.padding_after, 0, layer.padding_after});
      const auto bias = bias_of(layer, leaves[i]);
      x = at::conv2d(x, kernel_of(layer, leaves[i]), bias.defined() ? std::optional(bias) : std::nullopt, stride,
                     padding, Sizes{1, 1}, layer.groups);
    }
    if (layer.batch_norm)
      x = at::batch_norm(x, leaves[i].norm[0], leaves[i].norm[1], state_[i].running_mean, state_[i].running_variance,
                         i >= frozen_layers_, 0.1, layer.norm_epsilon, false);
    if (layer.addend) x = x + outputs[*layer.addend];
    outputs.push_back(layer.relu ? at::hardtanh(x, 0, layer.relu_limit) : x);
  }
  return outputs.back().reshape({pictures.size(0), -1});
}

double ReferenceNet::step(const at::Tensor& pictures, const at::Tensor& labels, const UpdateRule& options,
                          int num_micro_batches) {
  const at::AutoGradMode with_gradients(true);
  std::vector<NetLayerState> leaves(state_.size());
  for (int i = 0; i < static_cast<int>(leaves.size()); ++i) {
    leaves[i].weights = leaf_of(state_[i].weights, i >= frozen_layers_);
    leaves[i].norm = leaf_of(state_[i].norm, i >= frozen_layers_);
  }
  double loss = 0;
  const auto parts = pictures.chunk(num_micro_batches), labels_of_parts = labels.chunk(num_micro_batches);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto part = at::cross_entropy_loss(scores(parts[i], leaves), labels_of_parts[i]) / num_micro_batches;
    part.backward();
    loss += part.item<double>();
  }
  const at::NoGradGuard without_gradients;
  for (int i = frozen_layers_; i < static_cast<int>(state_.size()); ++i) {
    if (state_[i].weights.defined()) sgd(state_[i].weights, leaves[i].weights.grad(), momentum_[i].weights, options);
    if (state_[i].norm.defined()) sgd(state_[i].norm, leaves[i].norm.grad(), momentum_[i].norm, options);
  }
  return loss;
}

}  // namespace frostpipe::test
