#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "base/units.h"
#include "executor/communication/tensor_parallel.h"

namespace frostpipe {

/// Gradients of weight matrices and tables that are still to be computed: those of one micro-batch through one stage,
/// between its I and its W. Whatever else has a gradient (biases, norms, single rows, the matrix of a causal model's
/// head, whose logits are computed by parts) has got it in I.
class WeightGradients {
 public:
  /// Adds gradient^T x into `sum`, which may be of a higher precision; x has the own rows, and all are gathered when
  /// it is added. [out, in], [rows, out], [own rows, in]
  void add_product(at::Tensor sum, at::Tensor gradient, at::Tensor x, RankRows rows = {});
  /// Adds row i of `gradient` into row rows[i] of `sum`. [table rows, hidden], [n] int64, [n, hidden]
  void add_rows(at::Tensor sum, at::Tensor rows, at::Tensor gradient);
  /// In the order in which they came; lets go of each one's tensors when it is added.
  void compute();
  /// Of the tensors that are held, the sums not among them; each storage once.
  Bytes bytes() const;

 private:
  struct Later {
    at::Tensor sum, gradient, x;  // x: of a table, its rows
    bool is_table = false;
    RankRows rows{};  // of x
  };
  std::vector<Later> later_;
};

/// While one lives, backwards hand their weight gradients to `later`. Known to the whole process, not to one thread:
/// autograd runs the backward of a device on a thread of its own. A rank runs one action at a time.
class DeferWeightGradients {
 public:
  explicit DeferWeightGradients(WeightGradients& later);
  ~DeferWeightGradients();
  DeferWeightGradients(const DeferWeightGradients&) = delete;
  DeferWeightGradients& operator=(const DeferWeightGradients&) = delete;
};

/// What a backward calls for a matrix: WeightGradients::add_product, computed at once unless it is deferred.
void add_weight_gradient(const at::Tensor& sum, const at::Tensor& gradient, const at::Tensor& x,
                         const RankRows& rows = {});
/// And for a table: WeightGradients::add_rows.
void add_row_gradients(const at::Tensor& sum, const at::Tensor& rows, const at::Tensor& gradient);

}  // namespace frostpipe
