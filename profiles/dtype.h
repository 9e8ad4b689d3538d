#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

namespace frostpipe {

/// The types in which values are computed, in alphabetical order of their words, by which a profile sorts its
/// measurements.
enum class DType { kBFloat16, kFloat32, kFloat64 };

/// Returns the word of options and files, such as "float32".
std::string_view to_string(DType dtype);
/// Returns none if there is no such type.
std::optional<DType> find_dtype(std::string_view word);
/// Throws InvalidInput ("PLACE: must be float32, float64 or bfloat16, is ...").
void parse_text(std::string_view text, const std::string& place, DType& dtype);

/// Returns the bytes of one value of an activation, and of a weight in the form in which projections multiply with it.
Bytes bytes_per_value(DType dtype);
/// Returns the bytes of one stored weight, gradient or moment: with bfloat16 these are kept in float32.
Bytes kept_bytes_per_value(DType dtype);

}  // namespace frostpipe
