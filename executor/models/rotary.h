#pragma once
#include <ATen/core/Tensor.h>

#include "profiles/transformer/transformer_config.h"

// Rotary position embeddings (Su et al. 2021) in Hugging Face's layout: value i of a head's first half and value i of
// its second half form a pair, which is rotated by position x frequency i. If only a part of a head is rotated, the
// halves are those of that part.

namespace frostpipe {

/// Cosine and sine of each pair's angle, for each row. [rows, size / 2] each
struct RotaryAngles {
  at::Tensor cosine, sine;
};

/// Returns the rotations for tokens at positions `places`, [rows] int64, all below `longest`. Angles are computed in
/// single precision as in transformers (in double precision for double), and cached between calls.
RotaryAngles rotary_angles(const Rotary& rotary, std::int64_t head_size, const at::Tensor& places, std::int64_t longest,
                           at::ScalarType type);

/// Rotates the first `num_heads` heads of each row of x, [rows, at least num_heads x head_size], in place, and returns
/// x. Saves only the rotations for the backward.
at::Tensor rotated(const at::Tensor& x, const RotaryAngles& angles, std::int64_t head_size, std::int64_t num_heads);

/// The frequencies of the pairs of `size` values, and the factor of cosine and sine due to scaling. [size / 2]
struct Frequencies {
  at::Tensor values;
  double factor = 1;
};
Frequencies frequencies_of(const Rotary& rotary, std::int64_t size, at::ScalarType type);

}  // namespace frostpipe
