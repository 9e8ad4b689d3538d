// Oracle: the same product in double precision.
#include "executor/models/products.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace frostpipe {
namespace {

at::Tensor waves(std::int64_t rows, std::int64_t columns, double step) {
  return at::sin(at::arange(rows * columns, at::kDouble) * step).view({rows, columns});
}

void expect_rounded(const at::Tensor& product, const at::Tensor& exact) {
  EXPECT_EQ(product.sizes(), exact.sizes());
  const double largest = exact.abs().max().item<double>();
  EXPECT_LT((product.to(at::kDouble) - exact).abs().max().item<double>(), 1e-5 * largest);
}

TEST(Products, AreThoseOfDoublePrecisionWithFewRowsAndMany) {
  const at::Tensor stacked = waves(3 * 24, 40, 0.7), bias = waves(1, 24, 0.3).view(-1);
  const at::Tensor weight = stacked.narrow(0, 24, 24);  // rows of a stacked matrix
  for (const std::int64_t rows : {1, 31, 300}) {
    SCOPED_TRACE(rows);
    const at::Tensor x = waves(rows, 40, 0.11), gradient = waves(rows, 24, 0.13);
    const auto single = [](const at::Tensor& tensor) { return tensor.to(at::kFloat); };
    expect_rounded(times_transposed(single(x), single(stacked).narrow(0, 24, 24), single(bias)),
                   x.mm(weight.t()) + bias);
    expect_rounded(times_transposed(single(x), single(weight), std::nullopt), x.mm(weight.t()));
    expect_rounded(times(single(gradient), single(weight)), gradient.mm(weight));
    EXPECT_TRUE(at::equal(times(gradient, weight), gradient.mm(weight)));  // doubles go by LibTorch's own
    EXPECT_TRUE(at::equal(times(single(gradient), single(weight)), times(single(gradient), single(weight))));
  }
}

}  // namespace
}  // namespace frostpipe
