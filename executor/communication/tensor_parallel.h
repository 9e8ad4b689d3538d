#pragma once
#include <ATen/core/Tensor.h>
#include <torch/custom_class.h>

#include <vector>

#include "plan/layout.h"

namespace frostpipe {

class Group;

/// The tensor ranks of a stage, as its layers see them. A holder, so that autograd can keep it.
struct TensorParallel : torch::CustomClassHolder {
  TensorParallel(Group& with_group, const TensorSlice& of_rank, const at::Device& on_device,
                 bool is_sequence_parallel = false)
      : group(with_group), slice(of_rank), device(on_device), sequence_parallel(is_sequence_parallel) {}
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
  bool sequence_parallel;  // between matrices each has some of the tokens; else all have all
};

/// Null: the rank has its layers alone.
using TensorRanks = c10::intrusive_ptr<TensorParallel>;

inline TensorSlice slice_of(const TensorRanks& ranks) { return ranks ? ranks->slice : TensorSlice{}; }

/// Rows of a packed activation as tensor ranks have them: all have all, or, with sequence parallelism, each has some.
struct RankRows {
  TensorRanks ranks;                    // null: the rank has all rows alone
  std::vector<std::int64_t> of_each{};  // by tensor rank, whose rows follow each other; empty: all have all

  bool are_split() const { return !of_each.empty(); }
  /// Of the own rows, where they are split.
  std::int64_t begin() const;
  std::int64_t count() const { return of_each[ranks->slice.begin]; }
  /// All of them; `own`: how many this rank has.
  std::int64_t num_rows(std::int64_t own) const;
  /// The own ones of all rows.
  at::Tensor own(const at::Tensor& all) const;
  /// All rows, from everybody's own. Called by all tensor ranks, as is the next.
  at::Tensor gathered(const at::Tensor& own) const;
  /// The own rows of the sum of all tensor ranks' tensors, to the bit those of their sum.
  at::Tensor scattered_sum(const at::Tensor& all) const;
};

/// Of `tokens` tokens, whose parts are cut as a TensorSlice.
RankRows rows_of_tokens(std::int64_t tokens, const TensorRanks& ranks);

}  // namespace frostpipe
