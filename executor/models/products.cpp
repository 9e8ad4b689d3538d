#include "executor/models/products.h"

#include <ATen/core/List.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/linear.h>

#include <string_view>

namespace frostpipe {
namespace {

using Linear = at::Tensor(const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                          std::string_view activation, c10::List<std::optional<at::Scalar>> scalars,
                          std::optional<std::string_view> algorithm);

bool is_amd() {
#ifdef __x86_64__
  return __builtin_cpu_is("amd") != 0;
#else
  return false;
#endif
}

/// LibTorch's name for oneDNN's product of dense tensors; none where it was built without oneDNN.
std::optional<c10::TypedOperatorHandle<Linear>> find_onednn_linear() {
  const auto found = c10::Dispatcher::singleton().findSchema({"mkldnn::_linear_pointwise", ""});
  return found && is_amd() ? std::optional(found->typed<Linear>()) : std::nullopt;
}

/// Undefined where it is not the faster one.
at::Tensor onednn_linear(const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias) {
  static const auto linear = find_onednn_linear();
  if (!linear || !x.is_cpu() || x.scalar_type() != at::kFloat || x.size(0) == 0) return {};
  return linear->call(x, weight, bias, "none", c10::List<std::optional<at::Scalar>>(), "");
}

}  // namespace

at::Tensor times_transposed(const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias) {
  constexpr std::int64_t kFewRows = 256;  // below, oneDNN's copy of the weights takes longer than it saves
  if (x.size(0) >= kFewRows) {
    if (at::Tensor product = onednn_linear(x, weight, bias); product.defined()) return product;
  }
  return at::linear(x, weight, bias);
}

at::Tensor times(const at::Tensor& x, const at::Tensor& weight) {
  at::Tensor product = onednn_linear(x, weight.t(), std::nullopt);
  return product.defined() ? product : x.mm(weight);
}

}  // namespace frostpipe
