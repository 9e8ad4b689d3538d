#pragma once
#include <ATen/core/Tensor.h>

namespace frostpipe {

/// A parameter as used in the forward. The backward adds to `gradient`, which is undefined while the layer is frozen.
struct Parameter {
  at::Tensor value, gradient;
};

}  // namespace frostpipe
