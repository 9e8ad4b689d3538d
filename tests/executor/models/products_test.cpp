// Oracle: the same product in double precision. The machine determines which of the two libraries multiplies
// (find_onednn_gemm).
#include "executor/models/products.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

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
    EXPECT_TRUE(at::equal(times(gradient, weight), gradient.mm(weight)));  // LibTorch multiplies doubles
    EXPECT_TRUE(at::equal(times(single(gradient), single(weight)), times(single(gradient), single(weight))));
  }
}

at::Tensor added(at::Tensor sum, const at::Tensor& gradient, const at::Tensor& x) {
  add_transposed_times(sum, gradient, x);
  return sum;
}

TEST(Products, AreAddedToSumsWithFewRowsAndMany) {
  const at::Tensor sum = waves(24, 40, 0.5);
  for (const std::int64_t rows : {0, 1, 31, 300}) {
    SCOPED_TRACE(rows);
    const at::Tensor x = waves(rows, 40, 0.11), gradient = waves(rows, 24, 0.13), exact = sum + gradient.t().mm(x);
    const auto single = [](const at::Tensor& tensor) { return tensor.to(at::kFloat, /*non_blocking=*/false, true); };
    const at::Tensor product = added(single(sum), single(gradient), single(x));
    expect_rounded(product, exact);
    EXPECT_TRUE(at::equal(product, added(single(sum), single(gradient), single(x))));
    expect_rounded(added(single(sum), single(waves(40, rows, 0.13)).t().narrow(1, 8, 24), single(x)),
                   sum + waves(40, rows, 0.13).t().narrow(1, 8, 24).t().mm(x));  // columns of a transposed matrix
    expect_rounded(added(sum.clone(), gradient, x), exact);
    const at::Tensor half_x = x.to(at::kBFloat16), half_gradient = gradient.to(at::kBFloat16);
    const at::Tensor of_halves = half_gradient.to(at::kDouble).t().mm(half_x.to(at::kDouble));
    EXPECT_LT((added(single(sum), half_gradient, half_x).to(at::kDouble) - sum - of_halves).abs().max().item<double>(),
              0x1p-8 * std::max(1e-3, of_halves.abs().max().item<double>()));  // the product is rounded to bfloat16
  }
}

TEST(Products, OfMatricesThatLieInMemoryInAnyWay) {
  const at::Tensor wide = waves(24, 64, 0.3).to(at::kFloat);
  const std::vector<at::Tensor> matrices{wide,
                                         wide.narrow(1, 8, 40),                  // rows with gaps
                                         wide.t(),                               // contiguous columns
                                         wide.narrow(0, 3, 1),                   // one row
                                         wide.narrow(1, 5, 1),                   // one column
                                         wide.narrow(0, 3, 1).expand({24, 64}),  // equal rows that share memory
                                         wide.slice(0, 0, 24, 3),                // every third row
                                         wide.slice(1, 0, 64, 2),                // every second column
                                         wide.narrow(0, 3, 1).narrow(1, 5, 1)};
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    SCOPED_TRACE(i);
    const at::Tensor& x = matrices[i];
    const at::Tensor exact = x.to(at::kDouble);
    const at::Tensor weight = waves(7, x.size(1), 0.7), back = waves(x.size(1), 7, 0.7),
                     left = waves(x.size(0), 7, 0.2);
    const auto single = [](const at::Tensor& tensor) { return tensor.to(at::kFloat); };
    expect_rounded(times_transposed(x, single(weight), std::nullopt), exact.mm(weight.t()));
    expect_rounded(times_transposed(single(weight), x, single(left).select(1, 0)),
                   weight.mm(exact.t()) + left.select(1, 0));
    expect_rounded(times(x, single(back)), exact.mm(back));
    expect_rounded(times(single(left.t()), x), left.t().mm(exact));
    expect_rounded(added(at::zeros({7, x.size(1)}), single(left), x), left.t().mm(exact));
    expect_rounded(added(at::zeros({x.size(1), 7}), x, single(left)), exact.t().mm(left));
    expect_rounded(added(at::zeros({7, x.size(1)}, at::kFloat).t().contiguous().t(), single(left), x),
                   left.t().mm(exact));  // a sum with contiguous columns
  }
}

TEST(Products, OfNothingAreNothing) {
  const at::Tensor none = at::empty({0, 40}), weight = at::ones({24, 40});
  EXPECT_EQ(times_transposed(none, weight, at::ones({24})).sizes(), (at::IntArrayRef{0, 24}));
  EXPECT_EQ(times(at::empty({0, 24}), weight).sizes(), (at::IntArrayRef{0, 40}));
}

}  // namespace
}  // namespace frostpipe
