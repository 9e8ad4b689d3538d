#pragma once
#include <ATen/core/Tensor.h>
#include <torch/custom_class.h>

#include <vector>

#include "plan/layout.h"

namespace frostpipe {

class Group;

/// The tensor-parallel group of a stage, for its layers. It is a CustomClassHolder so that autograd can save it.
struct TensorParallel : torch::CustomClassHolder {
  TensorParallel(Group& with_group, const TensorSlice& of_rank, const at::Device& on_device,
                 bool is_sequence_parallel = false)
      : group(with_group), slice(of_rank), device(on_device), sequence_parallel(is_sequence_parallel) {}
  /// Sums `tensor` over all tensor ranks, in place, with the same bits on each. All of them must call it.
  void sum(at::Tensor tensor) const;
  /// Returns the elementwise sum over all tensor ranks of figures on the host. All of them must call it.
  std::vector<double> sum(std::vector<double> values) const;
  /// Returns the tensors of all tensor ranks, which must have one shape, stacked by tensor rank: [..] -> [tensor ranks,
  /// ..]. All of them must call it. It is implemented as a sum.
  at::Tensor gather(const at::Tensor& own) const;

  Group& group;       // must outlive this object
  TensorSlice slice;  // the part of the layers that this rank has
  at::Device device;
  bool sequence_parallel;  // between matrix products each rank has some of the tokens; if false, all tokens
};

/// A pointer to the stage's tensor-parallel group; null if the rank has whole layers.
using TensorRanks = c10::intrusive_ptr<TensorParallel>;

inline TensorSlice slice_of(const TensorRanks& ranks) { return ranks ? ranks->slice : TensorSlice{}; }

/// The division of the rows of a packed activation among tensor ranks: each has all rows or, with sequence parallelism,
/// a contiguous part. If all have all rows, own(), gathered() and scattered_sum() return their argument.
struct RankRows {
  TensorRanks ranks;                    // null if there are no other tensor ranks
  std::vector<std::int64_t> of_each{};  // number of rows of each tensor rank, in order; empty if all have all rows

  bool are_split() const { return !of_each.empty(); }
  /// Return the first of this rank's rows, and their number. Rows must be divided.
  std::int64_t begin() const;
  std::int64_t count() const { return of_each[ranks->slice.begin]; }
  /// Returns the number of rows in total. `own` is the number that this rank has.
  std::int64_t num_rows(std::int64_t own) const;
  /// Returns this rank's rows of `all`.
  at::Tensor own(const at::Tensor& all) const;
  /// All-gathers the rows. Must be called by all tensor ranks.
  at::Tensor gathered(const at::Tensor& own) const;
  /// Reduce-scatters: returns this rank's rows of the sum over all tensor ranks, on CPUs with the same bits as sum().
  /// Must be called by all tensor ranks.
  at::Tensor scattered_sum(const at::Tensor& all) const;
};

/// Divides `tokens` tokens among the tensor ranks if `ranks` uses sequence parallelism.
RankRows rows_of_tokens(std::int64_t tokens, const TensorRanks& ranks);

}  // namespace frostpipe
