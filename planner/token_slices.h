#pragma once
#include <functional>
#include <vector>

#include "profiles/units.h"

namespace frostpipe {

/// How a sequence is cut for TeraPipe.
struct TokenSlices {
  std::vector<int> lengths;  // in the order of the tokens
  Nanoseconds time_ns = 0;   // of all sequences through all stages
  bool operator==(const TokenSlices&) const = default;
};

/// Time of one slice on one stage, forward and backward, when `context` tokens lie before it.
using SliceTime = std::function<Nanoseconds(int length, int context)>;

/// Minimises sequences x (sum of slice times) + (stages - 1) x (longest slice time), TeraPipe's objective for sequences that follow each other (Li et al.
/// 2021, equation 5), over all cuts at multiples of `step`: for each bound on the longest slice a dynamic programme over prefixes. Bounds whose pipeline
/// alone takes as long as the best so far are left out, and those within `tolerance_ns` of the last (0 = none): then the result is at most
/// (sequences x slices + stages) x tolerance from the optimum, else exact.
/// Throws InvalidInput unless step divides tokens and all counts are positive.
TokenSlices slice_tokens(int tokens, int step, int stages, int sequences, const SliceTime& time, Nanoseconds tolerance_ns = 0);

}  // namespace frostpipe
