#include "executor/models/weight_gradients.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "executor/models/products.h"

namespace frostpipe {
namespace {

WeightGradients* deferring_to = nullptr;

}  // namespace

void WeightGradients::add_product(at::Tensor sum, at::Tensor gradient, at::Tensor x, RankRows rows) {
  later_.push_back(
      {.sum = std::move(sum), .gradient = std::move(gradient), .x = std::move(x), .rows = std::move(rows)});
}

void WeightGradients::add_rows(at::Tensor sum, at::Tensor rows, at::Tensor gradient) {
  later_.push_back({.sum = std::move(sum), .gradient = std::move(gradient), .x = std::move(rows), .is_table = true});
}

void WeightGradients::compute() {
  const at::NoGradGuard no_grad;
  for (Later& one : later_) {
    const auto [sum, gradient, own, is_table, rows] = std::exchange(one, {});
    const at::Tensor x = rows.gathered(own);
    if (is_table) {
      // A GPU's index_add_() adds in an order that varies; tensor ranks that hold a whole table would drift apart.
      if (sum.is_cuda())
        sum.index_put_({std::optional<at::Tensor>(x)}, gradient.to(sum.scalar_type()), /*accumulate=*/true);
      else
        sum.index_add_(0, x, gradient.to(sum.scalar_type()));
    } else {
      add_transposed_times(sum, gradient, x);
    }
  }
  later_.clear();
}

Bytes WeightGradients::bytes() const {
  std::set<const void*> counted;
  Bytes bytes = 0;
  for (const Later& one : later_) {
    for (const at::Tensor* tensor : {&one.gradient, &one.x})
      if (counted.insert(tensor->storage().unsafeGetStorageImpl()).second)
        bytes += static_cast<Bytes>(tensor->storage().nbytes());
  }
  return bytes;
}

DeferWeightGradients::DeferWeightGradients(WeightGradients& later) {
  FROSTPIPE_CHECK(deferring_to == nullptr, "a rank runs one action at a time");
  deferring_to = &later;
}

DeferWeightGradients::~DeferWeightGradients() { deferring_to = nullptr; }

void add_weight_gradient(const at::Tensor& sum, const at::Tensor& gradient, const at::Tensor& x, const RankRows& rows) {
  WeightGradients now;
  (deferring_to ? *deferring_to : now).add_product(sum, gradient, x, rows);
  now.compute();
}

void add_row_gradients(const at::Tensor& sum, const at::Tensor& rows, const at::Tensor& gradient) {
  WeightGradients now;
  (deferring_to ? *deferring_to : now).add_rows(sum, rows, gradient);
  now.compute();
}

}  // namespace frostpipe
