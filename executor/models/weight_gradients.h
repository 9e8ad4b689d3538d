#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "base/units.h"
#include "executor/communication/tensor_parallel.h"

namespace frostpipe {

/// Gradients of weight matrices and tables that are computed later (the W of a split backward): those of one
/// micro-batch in one stage, between its I and its W. All other gradients (of biases, norms, single rows, and the
/// matrix of a causal model's head, whose logits are computed in parts) are computed in I.
class WeightGradients {
 public:
  /// Adds gradient^T x into `sum`, which may have a higher precision. x has this rank's rows; if `rows` are divided,
  /// compute() gathers all of them, so all tensor ranks must call it together. [out, in], [rows, out], [own rows, in]
  void add_product(at::Tensor sum, at::Tensor gradient, at::Tensor x, RankRows rows = {});
  /// Adds row i of `gradient` into row rows[i] of `sum`. [table rows, hidden], [n] int64, [n, hidden]
  void add_rows(at::Tensor sum, at::Tensor rows, at::Tensor gradient);
  /// Computes them in the order of the calls, releasing each one's tensors.
  void compute();
  /// Returns the bytes of the held tensors without the sums; each storage counts once.
  Bytes bytes() const;

 private:
  struct Later {
    at::Tensor sum, gradient, x;  // x: for a table, its rows
    bool is_table = false;
    RankRows rows{};  // of x
  };
  std::vector<Later> later_;
};

/// While one lives, backwards add their weight gradients to `later`. It is process-wide, not per thread, since autograd
/// may run backwards on a thread of its own. Only one may live at a time: a rank runs one action at a time.
class DeferWeightGradients {
 public:
  explicit DeferWeightGradients(WeightGradients& later);
  ~DeferWeightGradients();
  DeferWeightGradients(const DeferWeightGradients&) = delete;
  DeferWeightGradients& operator=(const DeferWeightGradients&) = delete;
};

/// Called by the backward of a matrix: does what WeightGradients::add_product() does, and computes at once unless it is
/// deferred.
void add_weight_gradient(const at::Tensor& sum, const at::Tensor& gradient, const at::Tensor& x,
                         const RankRows& rows = {});
/// Called by the backward of a table: does the same for WeightGradients::add_rows().
void add_row_gradients(const at::Tensor& sum, const at::Tensor& rows, const at::Tensor& gradient);

}  // namespace frostpipe
