#pragma once
#include <ATen/core/Tensor.h>
#include <torch/custom_class.h>

#include "plan/layout.h"

namespace frostpipe {

class Group;

/// The tensor ranks of a stage, as its layers see them. A holder, so that autograd can keep it.
struct TensorParallel : torch::CustomClassHolder {
  explicit TensorParallel(Group& with_group);
  /// In place: the sum of all tensor ranks' tensors, to the bit the same on each. All of them call it at the same
  /// place.
  void sum(at::Tensor tensor) const;
  /// Everybody's tensors, which are of one shape, by tensor rank; as a sum. [..] -> [tensor ranks, ..]
  at::Tensor gather(const at::Tensor& own) const;

  Group& group;       // outlives this
  TensorSlice slice;  // this rank's, of what they share
};

/// Null: the rank has its layers alone.
using TensorRanks = c10::intrusive_ptr<TensorParallel>;

}  // namespace frostpipe
