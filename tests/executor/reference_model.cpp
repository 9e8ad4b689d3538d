#include "tests/executor/reference_model.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "executor/models/layer_state.h"
#include "executor/models/task.h"
#include "profiles/transformer/families.h"
#include "tests/executor/random_weights.h"

namespace frostpipe::test {
namespace {

at::Tensor exact_gelu(const at::Tensor& x) { return x * 0.5 * (1 + at::erf(x / std::sqrt(2.0))); }

at::Tensor tanh_gelu(const at::Tensor& x) {
  return x * 0.5 * (1 + at::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x.pow(3))));
}

at::Tensor activated(Activation activation, const at::Tensor& x) {
  switch (activation) {
    case Activation::gelu:
      return exact_gelu(x);
    case Activation::gelu_tanh:
      return tanh_gelu(x);
    case Activation::silu:
      return x / (1 + at::exp(-x));
    case Activation::relu:
      return at::clamp_min(x, 0);
    default:
      return at::tanh(x);
  }
}

/// -log p of the class in the last dimension.
at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& classes) {
  return -logits.log_softmax(-1).gather(-1, classes.unsqueeze(-1)).squeeze(-1);
}

}  // namespace

ReferenceModel::ReferenceModel(const TransformerConfig& config, std::uint64_t seed, at::ScalarType dtype)
    : config_(config), embeddings_are_tied_(config.ties_embeddings && config.task == Task::causal_language_modeling) {
  for (int layer = 0; layer < num_layers(config); ++layer) {
    const std::vector<ParameterSpec> specs = parameters_of(config, layer);
    LayerState state = make_layer_state(specs, {dtype, dtype}, at::kCPU, /*trains=*/false, 0);
    randomise_layer(config, layer, seed, state);
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const at::Tensor value = state.parameters[i].value.clone();
      tensors.push_back({value, {}, at::zeros_like(value), at::zeros_like(value), specs[i].matrix, specs[i].role});
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

const at::Tensor& ReferenceModel::value(int layer, Role role) const {
  static const at::Tensor kNone;
  for (const Tensor& tensor : layers_[layer])
    if (tensor.role == role) return tensor.value;
  return kNone;
}

at::Tensor ReferenceModel::product(const at::Tensor& x, int layer, Role weight, Role bias) const {
  const at::Tensor y = x.matmul(value(layer, weight).t());
  return value(layer, bias).defined() ? y + value(layer, bias) : y;
}

at::Tensor ReferenceModel::scaled(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) const {
  const at::Tensor centred = config_.norm == NormKind::rms ? x : x - x.mean(-1, /*keepdim=*/true);
  const at::Tensor normed = centred / (centred.pow(2).mean(-1, true) + config_.layer_norm_eps).sqrt() *
                            (config_.norm_adds_one ? weight + 1 : weight);
  return bias.defined() ? normed + bias : normed;
}

at::Tensor ReferenceModel::normed(const at::Tensor& x, int layer, Role scale, Role bias) const {
  return value(layer, scale).defined() ? scaled(x, value(layer, scale), value(layer, bias)) : x;
}

/// Rotary positions by complex numbers, with plain frequencies, and angles in the weights' precision. [samples, heads,
/// tokens, size]
at::Tensor ReferenceModel::rotated(const at::Tensor& x, int layer) const {
  const AttentionPattern pattern = config_.pattern_of(block_of_layer(config_, layer));
  if (pattern.rotary < 0) return x;
  const std::int64_t size = config_.rotaries[pattern.rotary].size(x.size(3)), half = size / 2, tokens = x.size(2);
  const at::Tensor halves = at::stack({x.narrow(3, 0, half), x.narrow(3, half, half)}, -1).to(at::kDouble);
  const at::Tensor exponent = at::arange(half, x.options()) / static_cast<double>(half),
                   theta = at::full({}, config_.rotaries[pattern.rotary].theta, x.options()),
                   angle = at::arange(tokens, x.options()).unsqueeze(1) * (1 / at::pow(theta, exponent));
  const at::Tensor rotated =
      at::view_as_real(at::view_as_complex(halves.contiguous()) *
                       at::complex(at::cos(angle).to(at::kDouble), at::sin(angle).to(at::kDouble)));
  return at::cat({rotated.select(-1, 0).to(x.scalar_type()), rotated.select(-1, 1).to(x.scalar_type()),
                  x.narrow(3, size, x.size(3) - size)},
                 3);
}

at::Tensor ReferenceModel::attended(const at::Tensor& x, int layer, const PaddedBatch& batch) const {
  const std::int64_t samples = x.size(0), tokens = x.size(1), size = config_.size_of_head();
  const auto by_head = [&](const at::Tensor& values) {
    return values.view({samples, tokens, -1, size}).transpose(1, 2);
  };
  at::Tensor query, key, values;
  if (value(layer, Role::query_key_value).defined()) {
    const std::vector<at::Tensor> all =
        product(x, layer, Role::query_key_value, Role::query_key_value_bias).chunk(3, 2);
    query = all[0], key = all[1], values = all[2];
  } else {
    query = product(x, layer, Role::query, Role::query_bias);
    const std::vector<at::Tensor> both = product(x, layer, Role::key_value, Role::key_value_bias).chunk(2, 2);
    key = both[0], values = both[1];
  }
  const auto normed_heads = [&](const at::Tensor& all, Role weight) {
    const at::Tensor& scale = value(layer, weight);
    return scale.defined() ? scaled(all.reshape({samples, tokens, -1, scale.size(0)}), scale, {}).reshape(all.sizes())
                           : all;
  };
  query = rotated(by_head(normed_heads(query, Role::query_norm)), layer);
  key = rotated(by_head(normed_heads(key, Role::key_norm)), layer);
  const std::int64_t shared_by = query.size(1) / key.size(1);
  key = key.repeat_interleave(shared_by, 1);
  values = by_head(values).repeat_interleave(shared_by, 1);
  const double scale = config_.attention_scale > 0 ? config_.attention_scale : 1 / std::sqrt(static_cast<double>(size));
  at::Tensor scores = query.matmul(key.transpose(2, 3)) * scale;
  if (config_.attention_soft_cap > 0)
    scores = config_.attention_soft_cap * at::tanh(scores / config_.attention_soft_cap);
  scores = scores.masked_fill((batch.mask == 0).view({samples, 1, 1, tokens}), -1e30);
  if (config_.is_causal) scores = scores.masked_fill(at::ones({tokens, tokens}, at::kBool).triu(1), -1e30);
  if (const std::int64_t window = config_.pattern_of(block_of_layer(config_, layer)).window; window > 0) {
    const at::Tensor seen = at::ones({tokens, tokens}, at::kBool).triu(1 - window).tril(window - 1);
    scores = scores.masked_fill(seen.logical_not(), -1e30);
  }
  const at::Tensor mixed = scores.softmax(-1).matmul(values).transpose(1, 2).reshape({samples, tokens, -1});
  return product(mixed, layer, Role::output, Role::output_bias);
}

at::Tensor ReferenceModel::mlp(const at::Tensor& x, int layer) const {
  at::Tensor inner = product(x, layer, Role::up, Role::up_bias);
  if (config_.has_gate) {
    const std::vector<at::Tensor> both = inner.chunk(2, 2);
    inner = activated(config_.activation, both[0]) * both[1];
  } else {
    inner = activated(config_.activation, inner);
  }
  return product(inner, layer, Role::down, Role::down_bias);
}

at::Tensor ReferenceModel::block_half(const at::Tensor& x, int layer, const PaddedBatch& batch) const {
  if (config_.has_parallel_residual)
    return x + attended(normed(x, layer), layer, batch) +
           mlp(normed(x, layer, Role::mlp_norm, Role::mlp_norm_bias), layer);
  const bool is_attention = layer % 2 == 1, is_after_sum = config_.norm_place == NormPlace::after_sum;
  const auto normed_half = [&](const at::Tensor& of) {
    return is_attention ? normed(of, layer) : normed(of, layer, Role::mlp_norm, Role::mlp_norm_bias);
  };
  const at::Tensor input = is_after_sum ? x : normed_half(x);
  const at::Tensor added =
      normed((is_attention ? attended(input, layer, batch) : mlp(input, layer)) * config_.residual_factor, layer,
             Role::output_norm, Role::output_norm_bias);
  return is_after_sum ? normed_half(x + added) : x + added;
}

at::Tensor ReferenceModel::head(const at::Tensor& x, const PaddedBatch& batch) const {
  const int layer = static_cast<int>(layers_.size()) - 1;
  at::Tensor said = normed(x, layer);
  if (config_.tells_class()) {
    std::vector<at::Tensor> read;
    for (std::int64_t i = 0; i < x.size(0); ++i) {
      const auto tokens = batch.mask[i].sum().item<std::int64_t>();
      read.push_back(config_.pools_tokens ? said[i].narrow(0, 0, tokens).mean(0)
                                          : said[i][config_.is_causal ? tokens - 1 : 0]);
    }
    said = at::stack(read);
  }
  if (value(layer, Role::dense).defined())
    said = normed(activated(head_of(config_).dense_activation, product(said, layer, Role::dense, Role::dense_bias)),
                  layer, Role::dense_norm, Role::dense_norm_bias);
  said = product(said, layer, Role::classes, Role::classes_bias);
  if (config_.task == Task::causal_language_modeling) said = said * config_.logits_factor;
  const bool is_capped = config_.logits_soft_cap > 0 && config_.task == Task::causal_language_modeling;
  return is_capped ? config_.logits_soft_cap * at::tanh(said / config_.logits_soft_cap) : said;
}

at::Tensor ReferenceModel::embedded(const PaddedBatch& batch) const {
  const std::int64_t samples = batch.mask.size(0), tokens = batch.mask.size(1), h = config_.hidden_size;
  if (config_.reads_pictures) {
    const std::int64_t p = config_.patch_size;
    const at::Tensor kernels = value(0, Role::patches).view({h, config_.num_channels, p, p});
    const at::Tensor patches =
        at::conv2d(batch.input, kernels, value(0, Role::patches_bias), p).flatten(2).transpose(1, 2);
    return at::cat({value(0, Role::class_token).expand({samples, 1, h}), patches}, 1) + value(0, Role::positions);
  }
  const auto rows_of = [&](Role table, const at::Tensor& rows) {
    return value(0, table).index_select(0, rows.reshape(-1)).view({samples, tokens, -1});
  };
  at::Tensor x = rows_of(Role::words, batch.input) * config_.embedding_factor;
  if (config_.has_position_table) x = x + value(0, Role::positions).narrow(0, config_.position_offset, tokens);
  if (config_.type_vocab_size > 0) {
    const bool has_types = batch.token_types.defined() && config_.type_vocab_size > 1;
    x = x + rows_of(Role::types, has_types ? batch.token_types : at::zeros({samples, tokens}, at::kLong));
  }
  x = normed(x, 0);
  return config_.embedding_size > 0 ? product(x, 0, Role::projection, Role::projection_bias) : x;
}

at::Tensor ReferenceModel::logits(const PaddedBatch& batch, int first_trainable_layer) {
  for (int layer = 0; layer < static_cast<int>(layers_.size()); ++layer) {
    for (Tensor& tensor : layers_[layer])
      tensor.value = tensor.value.detach().requires_grad_(layer >= first_trainable_layer);
  }
  if (embeddings_are_tied_) layers_.back()[0].value = layers_[0][0].value;
  at::Tensor x = embedded(batch);
  for (int layer = 1; layer + 1 < num_layers(config_); ++layer) x = block_half(x, layer, batch);
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
      const at::Tensor next = batch.labels[i].narrow(0, 1, length - 1),
                       with_loss = next.ne(kIgnored).nonzero().squeeze(1);
      losses.push_back(cross_entropy(said[i].index_select(0, with_loss), next.index_select(0, with_loss)).sum() /
                       static_cast<double>(std::max<std::int64_t>(1, with_loss.size(0))));
    }
    loss = at::stack(losses).mean();
  } else if (config_.task == Task::token_classification) {
    const at::Tensor labelled = batch.labels.ne(kIgnored) * batch.mask;
    loss = (cross_entropy(said, batch.labels.clamp_min(0)) * labelled).sum() / labelled.sum();
  } else if (config_.problem_type == ProblemType::multi_label) {
    const at::Tensor p = at::sigmoid(said);
    loss = -(batch.labels * at::log(p) + (1 - batch.labels) * at::log(1 - p)).mean();
  } else if (config_.problem_type == ProblemType::regression) {
    loss = (said - batch.labels).pow(2).mean();
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
