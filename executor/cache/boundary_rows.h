#pragma once
#include <ATen/core/Tensor.h>

#include "executor/models/micro_batch.h"

namespace frostpipe {

/// Collects a micro-batch's activations at the frozen boundary. The cache stores whole samples, so token slices are put
/// together.
struct BoundaryRows {
  at::Tensor rows;        // [tokens of the whole samples, hidden]
  bool is_whole = false;  // all token slices have been added
  /// Adds the activation of the micro-batch, or of one of its token slices. `is_last` marks the last slice.
  void take(const at::Tensor& activation, const MicroBatch& batch, bool is_last);
};

}  // namespace frostpipe
