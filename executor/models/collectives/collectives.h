#pragma once
#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/custom_function.h>

#include "executor/communication/tensor_parallel.h"

// What tensor ranks exchange within a layer, each with its gradient (Shoeybi et al. 2019; with sequence parallelism
// Korthikanti et al. 2022). Where nothing is shared, all of them give back what they are given.

namespace frostpipe {

/// x itself, with a gradient that is summed over the tensor ranks: where each computes something else with it.
at::Tensor copy_to(const TensorRanks& ranks, const at::Tensor& x);

/// The sum of all tensor ranks' `partial`, which is nobody else's: all of it, or, of rows that are split, the own ones.
at::Tensor sum_over(const RankRows& rows, const at::Tensor& partial);

/// All rows of everybody's `own` ones, with which all tensor ranks compute the same: the gradient is that of the own
/// rows.
at::Tensor all_of(const RankRows& rows, const at::Tensor& own);

/// The same, with which each computes something else: the gradient is summed over the tensor ranks.
at::Tensor shared_rows(const RankRows& rows, const at::Tensor& own);

/// Keeps `rows` from a function's forward to its backward.
void save(torch::autograd::AutogradContext& context, const RankRows& rows);
RankRows saved_rows(torch::autograd::AutogradContext& context);

}  // namespace frostpipe
