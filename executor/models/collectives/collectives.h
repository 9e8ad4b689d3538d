#pragma once
#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/custom_function.h>

#include "executor/communication/tensor_parallel.h"

// Collectives of tensor parallelism with their gradients (Shoeybi et al. 2019; with sequence parallelism Korthikanti et
// al. 2022). Without tensor ranks, they return their argument.

namespace frostpipe {

/// Returns x; the backward all-reduces the gradient. Used where each tensor rank computes something different with x.
at::Tensor copy_to(const TensorRanks& ranks, const at::Tensor& x);

/// Sums `partial` over the tensor ranks: an all-reduce in place or, if rows are divided, a reduce-scatter to each
/// rank's rows.
at::Tensor sum_over(const RankRows& rows, const at::Tensor& partial);

/// All-gathers rows with which all tensor ranks compute the same; the backward takes this rank's rows of the gradient.
/// Returns `own` if rows are not divided.
at::Tensor all_of(const RankRows& rows, const at::Tensor& own);

/// All-gathers rows with which each tensor rank computes something different; the backward reduce-scatters the
/// gradient. Does what copy_to() does if rows are not divided.
at::Tensor shared_rows(const RankRows& rows, const at::Tensor& own);

/// Keep `rows` from a function's forward to its backward.
void save(torch::autograd::AutogradContext& context, const RankRows& rows);
RankRows saved_rows(torch::autograd::AutogradContext& context);

}  // namespace frostpipe
