#pragma once
#include <ATen/core/Tensor.h>

namespace frostpipe {

/// Sum of the losses of a stage's forwards in an iteration, added on their device: nobody waits for it.
class StageLoss {
 public:
  /// An iteration begins. `in_place`: sums of all iterations are one tensor, 0 before the first forward.
  void begin(bool in_place, const at::Device& device);
  void add(const at::Tensor& loss);
  /// [] float64; undefined before the first forward.
  const at::Tensor& sum() const { return sum_; }

 private:
  bool in_place_ = false;
  at::Tensor sum_;
};

}  // namespace frostpipe
