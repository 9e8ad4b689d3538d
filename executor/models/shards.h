#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "executor/communication/group.h"
#include "executor/models/transformer.h"
#include "plan/layout.h"

// How a layer's parameters are shared by tensor ranks. Nothing else knows where a layer is cut.

namespace frostpipe {

/// What a rank with this slice holds of a whole parameter.
ParameterSpec cut(ParameterSpec whole, const TensorSlice& slice);
/// Of all parameters of a layer.
std::vector<ParameterSpec> cut(std::vector<ParameterSpec> whole, const TensorSlice& slice);

/// Some of the values of a layer, flat in parameters_of's order: the parts of what tensor ranks share, and, if
/// `with_whole`, all of what everybody has.
struct ShardOfLayer {
  TensorSlice slice;
  bool with_whole = true;
};

/// Values of `part`.
std::int64_t count_of(const std::vector<ParameterSpec>& layer, const ShardOfLayer& part);

/// Copies `wanted` out of the values of `held`, whole parameters included, which has it. `layer`: the whole
/// parameters. [values of held] -> [values of wanted]
at::Tensor taken(const std::vector<ParameterSpec>& layer, const at::Tensor& flat, const TensorSlice& held,
                 const ShardOfLayer& wanted);
/// The opposite: copies the values of `part` to where they are among those of `held`, whole parameters included.
void put(const std::vector<ParameterSpec>& layer, at::Tensor flat, const TensorSlice& held, const at::Tensor& values,
         const ShardOfLayer& part);

// Whole layers from the parts that tensor ranks hold: what leaves the run, as checkpoints and saved models do, is the
// same however many tensor ranks there are.

/// From where to where one layer's tensors go. Equal on all ranks that have a part in it.
struct LayerCollection {
  const std::vector<ParameterSpec>& whole;
  std::vector<LayerPart> parts;  // as whole_from() gives them
  int to_rank = 0;
  int tag = 0;       // of its messages; as many follow as there are parts
  std::string what;  // for errors: "collecting layer 7"
};

/// Called by `to_rank` and all ranks of the parts, in the same order where layers are several; others may call it and
/// do nothing. `group`: in host memory. `own`: this rank's values, flat; may be undefined where it has no part. Returns
/// the whole on to_rank, flat, in host memory: `own` itself where that is the whole, on the host already; nothing on
/// other ranks.
at::Tensor collect(const LayerCollection& collection, const at::Tensor& own, at::ScalarType type, Group& group);

}  // namespace frostpipe
