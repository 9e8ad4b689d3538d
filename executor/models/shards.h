#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "executor/models/transformer.h"
#include "plan/layout.h"

// How a layer's parameters are shared by tensor ranks. Nothing else knows where a layer is cut.

namespace frostpipe {

/// What a rank with this slice holds of a whole parameter.
ParameterSpec cut(ParameterSpec whole, const TensorSlice& slice);
/// Of all parameters of a layer, in parameters_of's order.
std::vector<ParameterSpec> parameters_of(const TransformerConfig& config, int layer, const TensorSlice& slice);

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

}  // namespace frostpipe
