#pragma once
// Implementation header: the types that a JSON field of a DType takes where it does not take all. Include it from .cpp
// files only.
#include "base/json_reader.h"
#include "profiles/dtype.h"

namespace frostpipe {

/// Of frozen layers.
inline constexpr json::Only kFrozenDTypes{std::array{DType::kBFloat16},
                                          "must be bfloat16, or left out: as the other layers"};
/// Of an activation cache's values.
inline constexpr json::Only kCacheDTypes{std::array{DType::kFloat32, DType::kBFloat16}, "must be float32 or bfloat16"};

}  // namespace frostpipe
