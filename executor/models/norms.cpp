#include "executor/models/norms.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <ATen/ops/tanh.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <optional>

#include "base/error.h"

namespace frostpipe {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::tensor_list;
using torch::autograd::variable_list;

at::ScalarType precise_type(const at::Tensor& x) { return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat; }

/// Returns the least number of rows per task, so that a task has enough values to be worth a thread.
std::int64_t grain(std::int64_t size) { return std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, size)); }

struct RmsNorm : Function<RmsNorm> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight, double eps,
                            bool adds_one) {
    const at::ScalarType type = precise_type(x);
    const at::Tensor precise = x.detach().to(type).contiguous(), scale = scale_of(weight, type, adds_one);
    at::Tensor inverse, output;
    if (x.is_cpu()) {
      inverse = at::empty({x.numel() / scale.size(0)}, precise.options());
      output = at::empty(x.sizes(), precise.options());
      AT_DISPATCH_FLOATING_TYPES(type, "rms_norm",
                                 [&] { forward_rows<scalar_t>(precise, scale, eps, inverse, output); });
    } else {
      const at::Tensor rows = precise.view({-1, scale.size(0)});
      inverse = (rows.square().mean(-1) + eps).rsqrt();
      output = at::empty(x.sizes(), precise.options());
      output.view(rows.sizes()).copy_(rows * inverse.unsqueeze(1) * scale);
    }
    context->save_for_backward({x, weight, inverse});
    context->saved_data["adds_one"] = adds_one;
    return output.to(x.scalar_type());
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &inverse = saved[2];
    const at::ScalarType type = inverse.scalar_type();
    const at::Tensor scale = scale_of(weight.detach(), type, context->saved_data["adds_one"].toBool());
    const at::Tensor rows = x.detach().to(type).contiguous().view({-1, scale.size(0)}),
                     gradient = gradients[0].to(type).contiguous().view(rows.sizes());
    at::Tensor of_weight, of_x;
    if (context->needs_input_grad(1))
      of_weight = (gradient * rows).mul_(inverse.unsqueeze(1)).sum(0).to(weight.scalar_type());
    if (context->needs_input_grad(0)) {
      if (x.is_cpu()) {
        of_x = at::empty_like(rows);
        AT_DISPATCH_FLOATING_TYPES(type, "rms_norm",
                                   [&] { backward_rows<scalar_t>(rows, scale, inverse, gradient, of_x); });
      } else {
        const at::Tensor scaled = gradient * scale, normed = rows * inverse.unsqueeze(1);
        of_x = (scaled - normed * (scaled * normed).mean(-1, /*keepdim=*/true)) * inverse.unsqueeze(1);
      }
      of_x = of_x.to(x.scalar_type()).view(x.sizes());
    }
    return {of_x, of_weight, at::Tensor(), at::Tensor()};
  }

 private:
  static at::Tensor scale_of(const at::Tensor& weight, at::ScalarType type, bool adds_one) {
    const at::Tensor scale = weight.detach().to(type).contiguous();
    return adds_one ? scale + 1 : scale;
  }

  template <class T>
  static void forward_rows(const at::Tensor& x, const at::Tensor& scale, double eps, const at::Tensor& inverse,
                           const at::Tensor& output) {
    const std::int64_t size = scale.size(0);
    const T* const from = x.const_data_ptr<T>();
    const T* const by = scale.const_data_ptr<T>();
    T* const kept = inverse.mutable_data_ptr<T>();
    T* const into = output.mutable_data_ptr<T>();
    at::parallel_for(0, inverse.numel(), grain(size), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const T* const values = from + row * size;
        const T factor = 1 / std::sqrt(dot(values, values, size) / static_cast<T>(size) + static_cast<T>(eps));
        kept[row] = factor;
        for (std::int64_t i = 0; i < size; ++i) into[row * size + i] = values[i] * factor * by[i];
      }
    });
  }

  template <class T>
  static void backward_rows(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& inverse,
                            const at::Tensor& gradient, const at::Tensor& of_x) {
    const std::int64_t size = scale.size(0);
    const T* const from = x.const_data_ptr<T>();
    const T* const by = scale.const_data_ptr<T>();
    const T* const kept = inverse.const_data_ptr<T>();
    const T* const given = gradient.const_data_ptr<T>();
    T* const into = of_x.mutable_data_ptr<T>();
    at::parallel_for(0, inverse.numel(), grain(size), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const T *const values = from + row * size, *const of_row = given + row * size;
        T* const out = into + row * size;
        for (std::int64_t i = 0; i < size; ++i) out[i] = of_row[i] * by[i];
        const T factor = kept[row], mean = dot(out, values, size) * factor * factor / static_cast<T>(size);
        for (std::int64_t i = 0; i < size; ++i) out[i] = (out[i] - values[i] * mean) * factor;
      }
    });
  }

  /// Uses 16 partial sums so that the compiler can vectorize it.
  template <class T>
  static T dot(const T* a, const T* b, std::int64_t size) {
    constexpr std::int64_t kParts = 16;
    T parts[kParts] = {};
    const std::int64_t whole = size / kParts * kParts;
    for (std::int64_t i = 0; i < whole; i += kParts)
      for (std::int64_t j = 0; j < kParts; ++j) parts[j] += a[i + j] * b[i + j];
    T sum = 0;
    for (const T part : parts) sum += part;
    for (std::int64_t i = whole; i < size; ++i) sum += a[i] * b[i];
    return sum;
  }
};

at::Tensor activation_gradient(Activation activation, const at::Tensor& gradient, const at::Tensor& x) {
  switch (activation) {
    case Activation::gelu:
      return at::gelu_backward(gradient, x, "none");
    case Activation::gelu_tanh:
      return at::gelu_backward(gradient, x, "tanh");
    case Activation::silu:
      return at::silu_backward(gradient, x);
    case Activation::relu:
      return gradient * (x > 0);
    case Activation::tanh:
      return gradient * (1 - x.tanh().square());
  }
  FROSTPIPE_CHECK(false, "every activation is listed above");
}

struct Gated : Function<Gated> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& both, std::int64_t activation) {
    context->save_for_backward({both});
    context->saved_data["activation"] = activation;
    const std::int64_t width = both.size(1) / 2;
    return activated(static_cast<Activation>(activation), both.narrow(1, 0, width)).mul_(both.narrow(1, width, width));
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    const at::Tensor both = context->get_saved_variables()[0], &gradient = gradients[0];
    const auto activation = static_cast<Activation>(context->saved_data["activation"].toInt());
    const std::int64_t width = both.size(1) / 2;
    const at::Tensor gate = both.narrow(1, 0, width), up = both.narrow(1, width, width);
    const at::Tensor of_both = at::empty_like(both);
    of_both.narrow(1, 0, width).copy_(activation_gradient(activation, gradient * up, gate));
    of_both.narrow(1, width, width).copy_(activated(activation, gate).mul_(gradient));
    return {of_both, at::Tensor()};
  }
};

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps, bool adds_one) {
  return RmsNorm::apply(x, weight, eps, adds_one);
}

at::Tensor norm(const TransformerConfig& config, const at::Tensor& x, const Parameter& weight, const Parameter& bias) {
  if (config.norm == NormKind::rms) return rms_norm(x, weight.value, config.layer_norm_eps, config.norm_adds_one);
  const auto shift = bias.value.defined() ? std::optional(bias.value.to(x.scalar_type())) : std::nullopt;
  return at::layer_norm(x, {x.size(-1)}, weight.value.to(x.scalar_type()), shift, config.layer_norm_eps);
}

at::Tensor activated(Activation activation, const at::Tensor& x) {
  switch (activation) {
    case Activation::gelu:
      return at::gelu(x);
    case Activation::gelu_tanh:
      return at::gelu(x, "tanh");
    case Activation::silu:
      return at::silu(x);
    case Activation::relu:
      return at::relu(x);
    case Activation::tanh:
      return at::tanh(x);
  }
  FROSTPIPE_CHECK(false, "every activation is listed above");
}

at::Tensor gated(Activation activation, const at::Tensor& gate_and_up) {
  return Gated::apply(gate_and_up, static_cast<std::int64_t>(activation));
}

}  // namespace frostpipe
