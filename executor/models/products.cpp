#include "executor/models/products.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <fmt/format.h>

#include "base/error.h"
#include "executor/device/onednn.h"

namespace frostpipe {
namespace {

/// True if oneDNN computes this product.
bool is_for_onednn(const at::Tensor& a, const at::Tensor& b) {
  const auto is_matrix = [](const at::Tensor& tensor) {
    return tensor.is_cpu() && tensor.scalar_type() == at::kFloat && tensor.dim() == 2 && tensor.numel() > 0;
  };
  return is_matrix(a) && is_matrix(b) && find_onednn_gemm();
}

/// A matrix with contiguous rows, as oneDNN needs it; a copy if `of` has no such rows.
struct Operand {
  explicit Operand(const at::Tensor& of, char letter = 'N')
      : tensor(of.stride(1) == 1 && of.stride(0) >= of.size(1) ? of : of.contiguous()),
        transposed(letter),
        leading(tensor.size(0) > 1 ? tensor.stride(0) : tensor.size(1)) {}

  std::int64_t rows() const { return tensor.size(transposed == 'T' ? 1 : 0); }
  std::int64_t columns() const { return tensor.size(transposed == 'T' ? 0 : 1); }

  at::Tensor tensor;
  char transposed;
  std::int64_t leading;
};

/// Computes product = a b + beta product.
void multiply(const Operand& a, const Operand& b, float beta, const at::Tensor& product) {
  const int status = find_onednn_gemm()(a.transposed, b.transposed, a.rows(), b.columns(), a.columns(), 1,
                                        a.tensor.const_data_ptr<float>(), a.leading, b.tensor.const_data_ptr<float>(),
                                        b.leading, beta, product.mutable_data_ptr<float>(), Operand(product).leading);
  if (status != 0)
    throw RuntimeFailure(fmt::format("oneDNN: a product of [{}, {}] and [{}, {}] failed with status {}{}", a.rows(),
                                     a.columns(), b.rows(), b.columns(), status, status == 1 ? ": no memory" : ""));
}

}  // namespace

at::Tensor times_transposed(const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias) {
  if (!is_for_onednn(x, weight)) return at::linear(x, weight, bias);
  const at::Tensor product = at::empty({x.size(0), weight.size(0)}, x.options());
  if (bias) product.copy_(*bias);
  multiply(Operand(x), Operand(weight, 'T'), bias ? 1 : 0, product);
  return product;
}

at::Tensor times(const at::Tensor& x, const at::Tensor& weight) {
  if (!is_for_onednn(x, weight)) return x.mm(weight);
  const at::Tensor product = at::empty({x.size(0), weight.size(1)}, x.options());
  multiply(Operand(x), Operand(weight), 0, product);
  return product;
}

void add_transposed_times(const at::Tensor& sum, const at::Tensor& gradient, const at::Tensor& x) {
  if (sum.scalar_type() != gradient.scalar_type()) {
    sum.add_(gradient.t().mm(x));
  } else if (is_for_onednn(gradient, x) && sum.is_contiguous()) {
    multiply(Operand(gradient, 'T'), Operand(x), 1, sum);
  } else {
    sum.addmm_(gradient.t(), x);
  }
}

}  // namespace frostpipe
