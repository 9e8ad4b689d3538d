#include "tests/executor/reference_encoder.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "executor/layer_state.h"
#include "executor/model_folder.h"

namespace frostpipe::test {

ReferenceEncoder::ReferenceEncoder(const EncoderConfig& config, std::uint64_t seed, at::ScalarType dtype) : config_(config) {
  const int num_layers = static_cast<int>(2 * config.num_hidden_layers + 2);
  for (int layer = 0; layer < num_layers; ++layer) {
    const std::vector<ParameterSpec> specs = parameters_of(config, layer);
    LayerState state = make_layer_state(specs, at::TensorOptions().dtype(dtype), /*trains=*/false, 0);
    randomise_layer(config, layer, seed, state);
    std::vector<Parameter> parameters;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const at::Tensor value = state.parameters[i].clone();
      parameters.push_back({value, at::zeros_like(value), at::zeros_like(value), specs[i].matrix});
    }
    layers_.push_back(std::move(parameters));
  }
}

at::Tensor ReferenceEncoder::logits(const MicroBatch& batch, int first_trainable_layer) {
  const std::int64_t samples = batch.token_ids.size(0), tokens = batch.token_ids.size(1), h = config_.hidden_size;
  const std::int64_t heads = config_.num_attention_heads;
  const auto norm = [&](const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
    const at::Tensor centred = x - x.mean(-1, /*keepdim=*/true);
    return centred / (centred.pow(2).mean(-1, true) + config_.layer_norm_eps).sqrt() * weight + bias;
  };
  const auto p = [&](int layer, int i) -> at::Tensor& { return layers_[layer][i].value; };
  for (int layer = 0; layer < static_cast<int>(layers_.size()); ++layer) {
    for (Parameter& parameter : layers_[layer]) {
      parameter.value = parameter.value.detach();
      parameter.value.requires_grad_(layer >= first_trainable_layer);
    }
  }
  at::Tensor x = p(0, 0).index_select(0, batch.token_ids.reshape(-1)).view({samples, tokens, h});
  x = norm(x + p(0, 1).narrow(0, 0, tokens) + p(0, 2)[0], p(0, 3), p(0, 4));
  const at::Tensor blocked = (batch.mask == 0).view({samples, 1, 1, tokens});
  for (int block = 0; block < config_.num_hidden_layers; ++block) {
    const int a = 1 + 2 * block, m = a + 1;
    std::vector<at::Tensor> qkv;
    for (int i = 0; i < 3; ++i) {
      const at::Tensor y = x.matmul(p(a, 0).narrow(0, i * h, h).t()) + p(a, 2).narrow(0, i * h, h);
      qkv.push_back(y.view({samples, tokens, heads, h / heads}).transpose(1, 2));
    }
    const at::Tensor scores = qkv[0].matmul(qkv[1].transpose(2, 3)) / std::sqrt(static_cast<double>(h / heads));
    const at::Tensor mixed = scores.masked_fill(blocked, -1e30).softmax(-1).matmul(qkv[2]);
    x = norm(mixed.transpose(1, 2).reshape({samples, tokens, h}).matmul(p(a, 1).t()) + p(a, 3) + x, p(a, 4), p(a, 5));
    const at::Tensor inner = x.matmul(p(m, 0).t()) + p(m, 2);
    const at::Tensor gelu = inner * 0.5 * (1 + at::erf(inner / std::sqrt(2.0)));
    x = norm(gelu.matmul(p(m, 1).t()) + p(m, 3) + x, p(m, 4), p(m, 5));
  }
  const int head = static_cast<int>(layers_.size()) - 1;
  const at::Tensor weights = batch.mask.unsqueeze(2);
  return ((x * weights).sum(1) / weights.sum(1)).matmul(p(head, 0).t()) + p(head, 1);
}

double ReferenceEncoder::loss_and_gradients(const MicroBatch& batch, int first_trainable_layer) {
  const at::Tensor log_probability = logits(batch, first_trainable_layer).log_softmax(1);
  const at::Tensor loss = -log_probability.gather(1, batch.labels.unsqueeze(1)).mean();
  torch::autograd::backward({loss}, {});
  return loss.item<double>();
}

at::Tensor ReferenceEncoder::gradient(int layer) const {
  std::vector<at::Tensor> parts;
  for (const Parameter& parameter : layers_[layer]) {
    const at::Tensor gradient = parameter.value.grad();
    parts.push_back(gradient.defined() ? gradient.reshape(-1) : at::zeros({parameter.value.numel()}, parameter.value.options()));
  }
  return at::cat(parts).detach();
}

at::Tensor ReferenceEncoder::weights(int layer) const {
  std::vector<at::Tensor> parts;
  for (const Parameter& parameter : layers_[layer]) parts.push_back(parameter.value.detach().reshape(-1));
  return at::cat(parts);
}

void ReferenceEncoder::step(const std::string& optimizer, double learning_rate, double weight_decay, double clip, int first_trainable_layer) {
  const at::NoGradGuard no_grad;
  ++steps_;
  double square_sum = 0;
  for (std::size_t layer = first_trainable_layer; layer < layers_.size(); ++layer) square_sum += gradient(layer).to(at::kDouble).pow(2).sum().item<double>();
  const double scale = clip > 0 && std::sqrt(square_sum) > clip ? clip / std::sqrt(square_sum) : 1;
  for (std::size_t layer = first_trainable_layer; layer < layers_.size(); ++layer) {
    for (Parameter& parameter : layers_[layer]) {
      const at::Tensor g = (parameter.value.grad().defined() ? parameter.value.grad() : at::zeros_like(parameter.value)) * scale;
      at::Tensor value = parameter.value.detach();
      if (optimizer == "sgd") {
        value.sub_(g * learning_rate);
        continue;
      }
      // Loshchilov and Hutter 2019, with bias correction.
      parameter.first_moment = parameter.first_moment * 0.9 + g * 0.1;
      parameter.second_moment = parameter.second_moment * 0.999 + g * g * 0.001;
      if (parameter.matrix) value.mul_(1 - learning_rate * weight_decay);
      const at::Tensor mean = parameter.first_moment / (1 - std::pow(0.9, steps_));
      const at::Tensor deviation = (parameter.second_moment / (1 - std::pow(0.999, steps_))).sqrt() + 1e-8;
      value.sub_(mean / deviation * learning_rate);
    }
  }
}

}  // namespace frostpipe::test
