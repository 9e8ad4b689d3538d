#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "executor/communication/group.h"
#include "plan/layout.h"
#include "profiles/transformer/parameters.h"

// These functions divide a layer's parameters among tensor ranks. No other file knows where a layer is divided.

namespace frostpipe {

/// Returns the part of a whole parameter that a rank with this slice holds.
ParameterSpec cut(ParameterSpec whole, const TensorSlice& slice);
/// Does the same for all parameters of a layer.
std::vector<ParameterSpec> cut(std::vector<ParameterSpec> whole, const TensorSlice& slice);

/// Some values of a layer, flat in the order of parameters_of(): the slice of the divided parameters and, with
/// `with_whole`, all undivided parameters.
struct ShardOfLayer {
  TensorSlice slice;
  bool with_whole = true;
};

/// Returns the number of values in `part`.
std::int64_t count_of(const std::vector<ParameterSpec>& layer, const ShardOfLayer& part);

/// Copies `wanted` from the values of `held` (including whole parameters), which must contain it. `layer` has the whole
/// parameters. [values of held] -> [values of wanted]
at::Tensor taken(const std::vector<ParameterSpec>& layer, const at::Tensor& flat, const TensorSlice& held,
                 const ShardOfLayer& wanted);
/// Does the inverse: copies the values of `part` to their positions among those of `held`, including whole parameters.
void put(const std::vector<ParameterSpec>& layer, at::Tensor flat, const TensorSlice& held, const at::Tensor& values,
         const ShardOfLayer& part);

// collect() assembles whole layers from the parts of tensor ranks, since everything that leaves the run, such as
// checkpoints and saved models, is independent of their number.

/// How one layer's tensors are collected on one rank. Must be equal on all ranks that take part.
struct LayerCollection {
  const std::vector<ParameterSpec>& whole;
  std::vector<LayerPart> parts;  // from whole_from()
  int to_rank = 0;
  int tag = 0;       // tag of the first message; each part uses one tag
  std::string what;  // for errors: "collecting layer 7"
};

/// Sends the parts of a layer to `to_rank`. Must be called by it and the ranks of the parts, in the same order for
/// several layers; other ranks may call it and do nothing. `group` is in host memory. `own` has this rank's values,
/// flat; it may be undefined if the rank has no part. Returns the whole layer on to_rank, flat, in host memory and of
/// dtype `type` (`own` itself if it is that already); an undefined tensor on other ranks.
at::Tensor collect(const LayerCollection& collection, const at::Tensor& own, at::ScalarType type, Group& group);

}  // namespace frostpipe
