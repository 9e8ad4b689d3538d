#pragma once
#include <ATen/core/Tensor.h>

#include "executor/models/transformer.h"

namespace frostpipe {

/// A micro-batch's activations at the frozen boundary, which the cache keeps by whole samples: slices are put together.
struct BoundaryRows {
  at::Tensor rows;        // [tokens of the whole samples, hidden]
  bool is_whole = false;  // all slices have come
  /// Of the micro-batch, or of one of its token slices, of which `is_last` may be the last.
  void take(const at::Tensor& activation, const MicroBatch& batch, bool is_last);
};

}  // namespace frostpipe
