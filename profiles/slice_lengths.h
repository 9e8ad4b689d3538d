#pragma once
#include <vector>

namespace frostpipe {

/// Lengths of token slices, ascending, that a causal model is profiled at beside whole samples of `longest` tokens:
/// each as the first slice and after half of the sample. Attention is linear in the context, the other layers do not
/// know it. None of samples too short to be cut so.
inline std::vector<int> slice_lengths(int longest) {
  if (longest < 8) return {};
  return {longest / 8, longest / 4, longest / 2};
}

}  // namespace frostpipe
