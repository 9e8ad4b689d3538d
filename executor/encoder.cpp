#include "executor/encoder.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <numeric>

#include "profiles/error.h"

namespace frostpipe {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::tensor_list;
using torch::autograd::variable_list;

at::Tensor as_matrix(const at::Tensor& activation) { return activation.reshape({-1, activation.size(-1)}); }

/// y = x W^T + b whose backward adds W's and b's gradients into their own buffers.
struct LinearFunction : Function<LinearFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
    context->save_for_backward({x, weight, bias});
    return at::linear(x, weight, bias);
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor x = as_matrix(saved[0]), gradient = as_matrix(gradients[0]);  // [rows, in], [rows, out]
    saved[1].grad().addmm_(gradient.t(), x);
    saved[2].grad().add_(gradient.sum(0));
    at::Tensor input_gradient;
    if (context->needs_input_grad(0)) input_gradient = gradient.mm(saved[1]).view(saved[0].sizes());
    return {input_gradient, at::Tensor(), at::Tensor()};
  }
};

/// Row look-up whose backward adds rows into the table's gradient: no dense temporary of the vocabulary's size.
struct EmbeddingFunction : Function<EmbeddingFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& table, const at::Tensor& ids) {
    context->save_for_backward({table, ids});
    return at::embedding(table, ids);
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    saved[0].grad().index_add_(0, saved[1].reshape(-1), as_matrix(gradients[0]));
    return {at::Tensor(), at::Tensor()};
  }
};

at::Tensor project(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::GradMode::is_enabled() && weight.requires_grad() ? LinearFunction::apply(x, weight, bias)
                                                              : at::linear(x, weight, bias);
}

at::Tensor look_up(const at::Tensor& table, const at::Tensor& ids) {
  return at::GradMode::is_enabled() && table.requires_grad() ? EmbeddingFunction::apply(table, ids)
                                                             : at::embedding(table, ids);
}

at::Tensor layer_norm(const EncoderConfig& config, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::layer_norm(x, {config.hidden_size}, weight, bias, config.layer_norm_eps);
}

at::Tensor embed(const EncoderConfig& config, std::span<const at::Tensor> p, const MicroBatch& batch) {
  const std::int64_t tokens = batch.token_ids.size(1);
  const at::Tensor sum = look_up(p[0], batch.token_ids) + p[1].narrow(0, 0, tokens) + p[2].select(0, 0);
  return layer_norm(config, sum, p[3], p[4]);
}

at::Tensor attend(const EncoderConfig& config, std::span<const at::Tensor> p, const at::Tensor& x, const at::Tensor& mask) {
  const std::int64_t samples = x.size(0), tokens = x.size(1), heads = config.num_attention_heads;
  const at::Tensor qkv = project(x, p[0], p[2]).view({samples, tokens, 3, heads, config.hidden_size / heads}).permute({2, 0, 3, 1, 4});
  // 0 for a token, the lowest finite value for padding, as transformers does it. [samples, 1, 1, tokens]
  const at::Tensor bias = ((1 - mask) * std::numeric_limits<float>::lowest()).view({samples, 1, 1, tokens});
  const at::Tensor mixed = at::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], bias.expand({samples, heads, tokens, tokens}));
  const at::Tensor joined = mixed.transpose(1, 2).reshape({samples, tokens, config.hidden_size});
  return layer_norm(config, project(joined, p[1], p[3]) + x, p[4], p[5]);
}

at::Tensor feed_forward(const EncoderConfig& config, std::span<const at::Tensor> p, const at::Tensor& x) {
  return layer_norm(config, project(at::gelu(project(x, p[0], p[2])), p[1], p[3]) + x, p[4], p[5]);
}

at::Tensor classify(std::span<const at::Tensor> p, const at::Tensor& x, const at::Tensor& mask) {
  const at::Tensor weights = mask.unsqueeze(2);  // masked mean over the tokens
  return project((x * weights).sum(1) / weights.sum(1), p[0], p[1]);
}

}  // namespace

std::int64_t ParameterSpec::count() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::vector<ParameterSpec> parameters_of(const EncoderConfig& c, int layer) {
  const std::int64_t h = c.hidden_size, f = c.intermediate_size;
  if (layer == 0) {
    const std::string e = "embeddings.";
    return {{{e + "word_embeddings.weight"}, {c.vocab_size, h}, true},
            {{e + "position_embeddings.weight"}, {c.max_position_embeddings, h}, true},
            {{e + "token_type_embeddings.weight"}, {c.type_vocab_size, h}, true},
            {{e + "LayerNorm.weight"}, {h}, false},
            {{e + "LayerNorm.bias"}, {h}, false}};
  }
  const int block = (layer - 1) / 2;
  if (block == c.num_hidden_layers) return {{{"classifier.weight"}, {c.num_labels, h}, true}, {{"classifier.bias"}, {c.num_labels}, false}};
  const std::string b = "encoder.layer." + std::to_string(block) + ".";
  if (layer % 2 == 1) {
    const std::string a = b + "attention.";
    return {{{a + "self.query.weight", a + "self.key.weight", a + "self.value.weight"}, {3 * h, h}, true},
            {{a + "output.dense.weight"}, {h, h}, true},
            {{a + "self.query.bias", a + "self.key.bias", a + "self.value.bias"}, {3 * h}, false},
            {{a + "output.dense.bias"}, {h}, false},
            {{a + "output.LayerNorm.weight"}, {h}, false},
            {{a + "output.LayerNorm.bias"}, {h}, false}};
  }
  return {{{b + "intermediate.dense.weight"}, {f, h}, true}, {{b + "output.dense.weight"}, {h, f}, true},
          {{b + "intermediate.dense.bias"}, {f}, false},     {{b + "output.dense.bias"}, {h}, false},
          {{b + "output.LayerNorm.weight"}, {h}, false},     {{b + "output.LayerNorm.bias"}, {h}, false}};
}

Model model_of(const EncoderConfig& config, std::string name) {
  Model model{.name = std::move(name), .hidden_size = static_cast<int>(config.hidden_size), .layers = {}, .edges = {}};
  const int num_layers = static_cast<int>(2 * config.num_hidden_layers + 2);
  for (int i = 0; i < num_layers; ++i) {
    Layer layer;
    if (i == 0) {
      layer = {.name = "embedding", .kind = LayerKind::embedding, .block = {}, .parameter_count = 0};
    } else if (i == num_layers - 1) {
      layer = {.name = "head", .kind = LayerKind::head, .block = {}, .parameter_count = 0};
    } else {
      const int block = (i - 1) / 2;
      const bool attention = i % 2 == 1;
      layer = {.name = "block." + std::to_string(block) + (attention ? ".attention" : ".mlp"),
               .kind = attention ? LayerKind::attention : LayerKind::mlp,
               .block = block,
               .parameter_count = 0};
    }
    for (const ParameterSpec& parameter : parameters_of(config, i)) layer.parameter_count += parameter.count();
    model.layers.push_back(std::move(layer));
    if (i > 0) model.edges.push_back({i - 1, i});
  }
  return model;
}

at::Tensor forward_layer(const EncoderConfig& config, const Layer& layer, std::span<const at::Tensor> parameters,
                         const at::Tensor& input, const MicroBatch& batch) {
  switch (layer.kind) {
    case LayerKind::embedding: return embed(config, parameters, batch);
    case LayerKind::attention: return attend(config, parameters, input, batch.mask);
    case LayerKind::mlp: return feed_forward(config, parameters, input);
    case LayerKind::head: return classify(parameters, input, batch.mask);
    case LayerKind::layer: break;  // of an imported profile: no encoder has one
  }
  FROSTPIPE_CHECK(false, "every kind of layer is listed above");
}

at::Tensor loss_sum(const at::Tensor& logits, const at::Tensor& labels) {
  return at::cross_entropy_loss(logits, labels, {}, at::Reduction::Sum);
}

}  // namespace frostpipe
