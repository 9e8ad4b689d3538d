#pragma once
// Implementation header: JSON fields of a DType that accept only some of the types. Include it from .cpp files only.
#include "base/json_reader.h"
#include "profiles/dtype.h"

namespace frostpipe {

/// The types of frozen layers.
inline constexpr json::Only kFrozenDTypes{std::array{DType::kBFloat16},
                                          "must be bfloat16, or left out for the other layers' type"};
/// The types of an activation cache's values.
inline constexpr json::Only kCacheDTypes{std::array{DType::kFloat32, DType::kBFloat16}, "must be float32 or bfloat16"};

}  // namespace frostpipe
