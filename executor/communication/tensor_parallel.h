#pragma once
#include <ATen/core/Tensor.h>
#include <torch/custom_class.h>

#include <vector>

#include "plan/layout.h"

namespace frostpipe {

class Group;

/// The tensor ranks of a stage, as its layers see them. A holder, so that autograd can keep it.
struct TensorParallel : torch::CustomClassHolder {
  TensorParallel(Group& with_group, const TensorSlice& of_rank, const at::Device& on_device)
      : group(with_group), slice(of_rank), device(on_device) {}
  /// In place: the sum of all tensor ranks' tensors, to the bit the same on each. All of them call it at the same
  /// place.
  void sum(at::Tensor tensor) const;
  /// The same of figures on the host.
  std::vector<double> sum(std::vector<double> values) const;
  /// Everybody's tensors, which are of one shape, by tensor rank; as a sum. [..] -> [tensor ranks, ..]
  at::Tensor gather(const at::Tensor& own) const;

  Group& group;       // outlives this
  TensorSlice slice;  // this rank's part of what they share
  at::Device device;
};

/// Null: the rank has its layers alone.
using TensorRanks = c10::intrusive_ptr<TensorParallel>;

inline TensorSlice slice_of(const TensorRanks& ranks) { return ranks ? ranks->slice : TensorSlice{}; }

}  // namespace frostpipe
