#pragma once
#include <ATen/ATen.h>

#include "base/units.h"

namespace frostpipe::test {

inline constexpr Bytes kMiB = 1 << 20;

/// Values whose storage takes so much.
inline at::Tensor mebibytes(int count) { return at::empty({count * kMiB / 4}, at::kFloat); }

}  // namespace frostpipe::test
