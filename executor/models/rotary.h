#pragma once
#include <ATen/core/Tensor.h>

#include "profiles/transformer/transformer_config.h"

// Rotary positions (Su et al. 2021) as Hugging Face has them: value i of a head's first half and value i of its second
// half are a pair, which turns by position x frequency i. Where only a part of a head turns, the halves are of that
// part.

namespace frostpipe {

/// Of each row, cosine and sine of each pair's angle. [rows, size / 2] each
struct Turns {
  at::Tensor cosine, sine;
};

/// For tokens at `places`, [rows] int64, all below `longest`. Angles are computed in single
/// precision, as transformers does, in double precision for that, and kept from call to call.
Turns turns_of(const Rotary& rotary, std::int64_t head_size, const at::Tensor& places, std::int64_t longest,
               at::ScalarType type);

/// The rows of x with their first `num_heads` heads turned: x itself, changed in place, so that nothing is kept for the
/// backward but the turns. [rows, heads x size, and what follows]
at::Tensor turned(const at::Tensor& x, const Turns& turns, std::int64_t head_size, std::int64_t num_heads);

/// Frequencies of the pairs of `size` values, and by how much scaling multiplies cosine and sine. [size / 2]
struct Frequencies {
  at::Tensor values;
  double factor = 1;
};
Frequencies frequencies_of(const Rotary& rotary, std::int64_t size, at::ScalarType type);

}  // namespace frostpipe
