#pragma once
#include <ATen/core/Tensor.h>
#include <torch/custom_class.h>

namespace frostpipe {

class Group;

/// The tensor ranks of a stage, as its layers see them. A holder, so that autograd can keep it.
struct TensorParallel : torch::CustomClassHolder {
  explicit TensorParallel(Group& with_group) : group(with_group) {}
  /// In place: the sum of all tensor ranks' tensors, to the bit the same on each. All of them call it at the same
  /// place.
  void sum(at::Tensor tensor) const;

  Group& group;  // outlives this
};

/// Null: the rank has its layers alone.
using TensorRanks = c10::intrusive_ptr<TensorParallel>;

}  // namespace frostpipe
