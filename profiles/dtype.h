#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

namespace frostpipe {

/// What values are computed in. In the order of the words, in which a profile has its measurements.
enum class DType { kBFloat16, kFloat32, kFloat64 };

/// "float32", as in options and files.
std::string_view to_string(DType dtype);
/// None if there is no such type.
std::optional<DType> find_dtype(std::string_view word);
/// Throws InvalidInput ("PLACE: must be float32, float64 or bfloat16, is ...").
void parse_text(std::string_view text, const std::string& place, DType& dtype);

/// Of activations, and of what projections multiply with.
Bytes bytes_per_value(DType dtype);
/// Of weights, gradients and moments: bfloat16 keeps them in float32.
Bytes kept_bytes_per_value(DType dtype);

}  // namespace frostpipe
