#pragma once
#include <utility>
#include <vector>

namespace frostpipe {

/// Every two of n, each pair once with the smaller first, in rounds in which each of them is in one pair at most: n - 1
/// rounds, n where n is odd.
std::vector<std::vector<std::pair<int, int>>> rounds_of_pairs(int n);

}  // namespace frostpipe
