#pragma once
#include <vector>

namespace frostpipe {

/// Returns the lengths of token slices, ascending, at which a causal model is profiled beside whole samples of
/// `longest` tokens: each as the first slice and after half of the sample. Two contexts suffice, since attention is
/// linear in the context and other layers do not depend on it. The result is empty if samples are too short to be cut.
inline std::vector<int> slice_lengths(int longest) {
  if (longest < 8) return {};
  return {longest / 8, longest / 4, longest / 2};
}

}  // namespace frostpipe
