#include "tests/executor/reference_model.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <utility>

#include "executor/models/layer_state.h"
#include "tests/executor/random_weights.h"

namespace frostpipe::test {
namespace {

at::Tensor product(const at::Tensor& x, const at::Tensor& weight) { return x.matmul(weight.t()); }

at::Tensor exact_gelu(const at::Tensor& x) { return x * 0.5 * (1 + at::erf(x / std::sqrt(2.0))); }

at::Tensor tanh_gelu(const at::Tensor& x) {
  return x * 0.5 * (1 + at::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x.pow(3))));
}

/// -log p of the class in the last dimension.
at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& classes) {
  return -logits.log_softmax(-1).gather(-1, classes.unsqueeze(-1)).squeeze(-1);
}

}  // namespace

ReferenceModel::ReferenceModel(const TransformerConfig& config, std::uint64_t seed, at::ScalarType dtype)
    : config_(config), embeddings_are_tied_(config.ties_embeddings && config.task == Task::causal_language_modeling) {
  const int num_layers = static_cast<int>(2 * config.num_hidden_layers + 2);
  for (int layer = 0; layer < num_layers; ++layer) {
    const std::vector<ParameterSpec> specs = parameters_of(config, layer);
    LayerState state = make_layer_state(specs, {dtype, dtype}, at::kCPU, /*trains=*/false, 0);
    randomise_layer(config, layer, seed, state);
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const at::Tensor value = state.parameters[i].value.clone();
      tensors.push_back({value, {}, at::zeros_like(value), at::zeros_like(value), specs[i].matrix});
    }
    layers_.push_back(std::move(tensors));
  }
  if (embeddings_are_tied_) layers_.back()[0].value = layers_[0][0].value;
}

void ReferenceModel::cut_tie() {
  if (!embeddings_are_tied_) return;
  embeddings_are_tied_ = false;
  layers_.back()[0].value = layers_[0][0].value.detach().clone();
  layers_.back()[0].first_moment = layers_[0][0].first_moment.clone();
  layers_.back()[0].second_moment = layers_[0][0].second_moment.clone();
}

void ReferenceModel::delay_updates() {
  delays_updates_ = true;
  for (std::vector<Tensor>& layer : layers_)
    for (Tensor& tensor : layer) tensor.older = tensor.value.detach().clone();
}

void ReferenceModel::swap_versions() {
  if (!delays_updates_) return;
  for (std::vector<Tensor>& layer : layers_)
    for (Tensor& tensor : layer) std::swap(tensor.value, tensor.older);
}

at::Tensor ReferenceModel::normed(const at::Tensor& x, int layer, int scale) const {
  const at::Tensor centred = x - x.mean(-1, /*keepdim=*/true);
  return centred / (centred.pow(2).mean(-1, true) + config_.layer_norm_eps).sqrt() * value(layer, scale) +
         value(layer, scale + 1);
}

at::Tensor ReferenceModel::attended(const at::Tensor& qkv, const PaddedBatch& batch) const {
  const std::int64_t samples = qkv.size(0), tokens = qkv.size(1), heads = config_.num_attention_heads,
                     size = config_.hidden_size / heads;
  std::vector<at::Tensor> parts;
  for (int i = 0; i < 3; ++i)
    parts.push_back(qkv.narrow(2, i * config_.hidden_size, config_.hidden_size)
                        .view({samples, tokens, heads, size})
                        .transpose(1, 2));
  at::Tensor scores = parts[0].matmul(parts[1].transpose(2, 3)) / std::sqrt(static_cast<double>(size));
  scores = scores.masked_fill((batch.mask == 0).view({samples, 1, 1, tokens}), -1e30);
  if (config_.family == Family::gpt2) scores = scores.masked_fill(at::ones({tokens, tokens}, at::kBool).triu(1), -1e30);
  return scores.softmax(-1).matmul(parts[2]).transpose(1, 2).reshape({samples, tokens, config_.hidden_size});
}

at::Tensor ReferenceModel::block_half(const at::Tensor& x, int layer, const PaddedBatch& batch) const {
  const auto v = [&](int i) -> const at::Tensor& { return value(layer, i); };
  const bool is_attention = layer % 2 == 1;
  switch (config_.family) {
    case Family::bert:
      if (is_attention) return normed(product(attended(product(x, v(0)) + v(2), batch), v(1)) + v(3) + x, layer, 4);
      return normed(product(exact_gelu(product(x, v(0)) + v(2)), v(1)) + v(3) + x, layer, 4);
    case Family::vit:
      if (is_attention) return x + product(attended(product(normed(x, layer, 3), v(0)) + v(5), batch), v(1)) + v(2);
      return x + product(exact_gelu(product(normed(x, layer, 4), v(0)) + v(2)), v(1)) + v(3);
    default:
      if (is_attention) return x + product(attended(product(normed(x, layer, 4), v(0)) + v(2), batch), v(1)) + v(3);
      return x + product(tanh_gelu(product(normed(x, layer, 4), v(0)) + v(2)), v(1)) + v(3);
  }
}

at::Tensor ReferenceModel::head(const at::Tensor& x, const PaddedBatch& batch) const {
  const int layer = static_cast<int>(layers_.size()) - 1;
  const auto v = [&](int i) -> const at::Tensor& { return value(layer, i); };
  if (config_.family == Family::bert) {
    if (config_.task == Task::question_answering) return product(x, v(0)) + v(1);
    return product(at::tanh(product(x.select(1, 0), v(0)) + v(2)), v(1)) + v(3);
  }
  if (config_.family == Family::vit) return product(normed(x.select(1, 0), layer, 2), v(0)) + v(1);
  if (config_.task == Task::causal_language_modeling) return product(normed(x, layer, 1), v(0));
  if (config_.task == Task::question_answering) return product(normed(x, layer, 1), v(0)) + v(3);
  std::vector<at::Tensor> last;
  for (std::int64_t i = 0; i < x.size(0); ++i) last.push_back(x[i][batch.mask[i].sum().item<std::int64_t>() - 1]);
  return product(normed(at::stack(last), layer, 1), v(0));
}

at::Tensor ReferenceModel::logits(const PaddedBatch& batch, int first_trainable_layer) {
  for (int layer = 0; layer < static_cast<int>(layers_.size()); ++layer) {
    for (Tensor& tensor : layers_[layer])
      tensor.value = tensor.value.detach().requires_grad_(layer >= first_trainable_layer);
  }
  if (embeddings_are_tied_) layers_.back()[0].value = layers_[0][0].value;
  const std::int64_t samples = batch.mask.size(0), tokens = batch.mask.size(1), h = config_.hidden_size;
  at::Tensor x;
  if (config_.family == Family::vit) {
    const std::int64_t p = config_.patch_size;
    const at::Tensor kernels = value(0, 0).view({h, config_.num_channels, p, p});
    const at::Tensor patches = at::conv2d(batch.input, kernels, value(0, 3), p).flatten(2).transpose(1, 2);
    x = at::cat({value(0, 2).expand({samples, 1, h}), patches}, 1) + value(0, 1);
  } else {
    x = value(0, 0).index_select(0, batch.input.reshape(-1)).view({samples, tokens, h}) +
        value(0, 1).narrow(0, 0, tokens);
  }
  if (config_.family == Family::bert) {
    const at::Tensor types = batch.token_types.defined() ? batch.token_types : at::zeros({samples, tokens}, at::kLong);
    x = normed(x + value(0, 2).index_select(0, types.reshape(-1)).view({samples, tokens, h}), 0, 3);
  }
  for (int layer = 1; layer <= 2 * config_.num_hidden_layers; ++layer) x = block_half(x, layer, batch);
  return head(x, batch);
}

double ReferenceModel::loss_and_gradients(const MicroBatch& packed, int first_trainable_layer) {
  const PaddedBatch batch(packed);
  swap_versions();
  const at::Tensor said = logits(batch, first_trainable_layer);
  swap_versions();
  at::Tensor loss;
  if (config_.task == Task::question_answering) {
    const at::Tensor ends = said.masked_fill((batch.mask == 0).unsqueeze(2), -1e30);
    loss = (cross_entropy(ends.select(2, 0), batch.labels.select(1, 0)) +
            cross_entropy(ends.select(2, 1), batch.labels.select(1, 1)))
               .mean() /
           2;
  } else if (config_.task == Task::causal_language_modeling) {
    std::vector<at::Tensor> losses;
    for (std::int64_t i = 0; i < said.size(0); ++i) {
      const std::int64_t length = batch.mask[i].sum().item<std::int64_t>();
      losses.push_back(
          cross_entropy(said[i].narrow(0, 0, length - 1), batch.labels[i].narrow(0, 1, length - 1)).mean());
    }
    loss = at::stack(losses).mean();
  } else {
    loss = cross_entropy(said, batch.labels).mean();
  }
  torch::autograd::backward({loss}, {});
  return loss.item<double>();
}

at::Tensor ReferenceModel::gradient(int layer) const {
  std::vector<at::Tensor> parts;
  for (const Tensor& tensor : layers_[layer]) {
    const at::Tensor gradient = used(tensor).grad();
    parts.push_back(gradient.defined() ? gradient.reshape(-1)
                                       : at::zeros({tensor.value.numel()}, tensor.value.options()));
  }
  return at::cat(parts).detach();
}

at::Tensor ReferenceModel::weights(int layer) const {
  std::vector<at::Tensor> parts;
  for (const Tensor& tensor : layers_[layer]) parts.push_back(tensor.value.detach().reshape(-1));
  return at::cat(parts);
}

void ReferenceModel::step(Optimizer optimizer, double learning_rate, double weight_decay, double clip,
                          int first_trainable_layer) {
  const at::NoGradGuard no_grad;
  ++steps_;
  const auto is_second_of_tie = [&](std::size_t layer, std::size_t i) {
    return embeddings_are_tied_ && layer + 1 == layers_.size() && i == 0;
  };
  const auto gradient_of = [&](const Tensor& tensor) {
    return used(tensor).grad().defined() ? used(tensor).grad() : at::zeros_like(tensor.value);
  };
  double square_sum = 0;
  for (std::size_t layer = first_trainable_layer; layer < layers_.size(); ++layer) {
    for (std::size_t i = 0; i < layers_[layer].size(); ++i) {
      if (!is_second_of_tie(layer, i))
        square_sum += gradient_of(layers_[layer][i]).to(at::kDouble).pow(2).sum().item<double>();
    }
  }
  const double scale = clip > 0 && std::sqrt(square_sum) > clip ? clip / std::sqrt(square_sum) : 1;
  for (std::size_t layer = first_trainable_layer; layer < layers_.size(); ++layer) {
    for (std::size_t i = 0; i < layers_[layer].size(); ++i) {
      if (is_second_of_tie(layer, i)) continue;
      Tensor& tensor = layers_[layer][i];
      const at::Tensor g = gradient_of(tensor) * scale;
      at::Tensor value = tensor.value.detach();
      if (delays_updates_) tensor.older = value.clone();
      if (optimizer == Optimizer::kSgd) {
        value.sub_(g * learning_rate);
        continue;
      }
      // Loshchilov and Hutter 2019, with bias correction.
      tensor.first_moment = tensor.first_moment * 0.9 + g * 0.1;
      tensor.second_moment = tensor.second_moment * 0.999 + g * g * 0.001;
      if (tensor.matrix) value.mul_(1 - learning_rate * weight_decay);
      const at::Tensor mean = tensor.first_moment / (1 - std::pow(0.9, steps_));
      const at::Tensor deviation = (tensor.second_moment / (1 - std::pow(0.999, steps_))).sqrt() + 1e-8;
      value.sub_(mean / deviation * learning_rate);
    }
  }
}

}  // namespace frostpipe::test
