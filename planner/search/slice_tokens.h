#pragma once
#include <functional>
#include <vector>

#include "base/units.h"

namespace frostpipe {

/// How a sequence is cut for TeraPipe.
struct TokenSlices {
  std::vector<int> lengths;  // in the order of the tokens
  Nanoseconds time_ns = 0;   // of all sequences through all stages
  bool operator==(const TokenSlices&) const = default;
};

/// Time of one slice on one stage, forward and backward, when `context` tokens lie before it.
using SliceTime = std::function<Nanoseconds(int length, int context)>;

/// Minimises sequences x (sum of slice times) + (stages - 1) x (longest slice time), TeraPipe's objective for sequences
/// that follow each other (Li et al. 2021, equation 5), over all cuts at multiples of `step`: for each bound on the
/// longest slice a dynamic programme over prefixes. Bounds whose pipeline alone takes as long as the best so far are
/// left out, and of those less than `tolerance_ns` apart only the highest is tried (0 = all): it allows what the others
/// do and its longest slice is less than the tolerance longer, so that the result is at most (stages - 1) x tolerance
/// above the optimum; with 0 exact. Throws InvalidInput unless step divides tokens and all counts are positive.
TokenSlices slice_tokens(int tokens, int step, int stages, int sequences, const SliceTime& time,
                         Nanoseconds tolerance_ns = 0);

}  // namespace frostpipe
