#pragma once
#include <functional>
#include <vector>

#include "base/units.h"

namespace frostpipe {

/// The cut of a sequence for TeraPipe.
struct TokenSlices {
  std::vector<int> lengths;  // in the order of the tokens
  Nanoseconds time_ns = 0;   // of all sequences through all stages
  bool operator==(const TokenSlices&) const = default;
};

/// Returns the time of one slice on one stage, forward and backward, after `context` tokens.
using SliceTime = std::function<Nanoseconds(int length, int context)>;

/// Minimizes sequences x (sum of slice times) + (stages - 1) x (longest slice time), TeraPipe's objective for
/// successive sequences (Li et al. 2021, equation 5), over all cuts at multiples of `step`: for each bound on the
/// longest slice it runs a dynamic program over prefixes. A bound is skipped if a slice of that time alone makes the
/// pipeline as slow as the best so far. Of bounds less than `tolerance_ns` apart only the highest is tried (0 = all):
/// it allows the cuts of the others, and its longest slice is less than the tolerance longer, so the result is at most
/// (stages - 1) x tolerance above the optimum; with 0 it is exact. Throws InvalidInput unless step divides tokens and
/// all counts are positive.
TokenSlices slice_tokens(int tokens, int step, int stages, int sequences, const SliceTime& time,
                         Nanoseconds tolerance_ns = 0);

}  // namespace frostpipe
