#pragma once
#include <utility>
#include <vector>

namespace frostpipe {

/// Returns every pair of n participants once, the smaller first, in rounds in which each is in one pair at most: n - 1
/// rounds, or n if n is odd.
std::vector<std::vector<std::pair<int, int>>> rounds_of_pairs(int n);

}  // namespace frostpipe
