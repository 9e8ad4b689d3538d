#include "executor/profiler/pair_rounds.h"

#include <algorithm>

namespace frostpipe {

std::vector<std::vector<std::pair<int, int>>> rounds_of_pairs(int n) {
  const int seats = n + n % 2, others = seats - 1;  // odd n: participant n is a dummy, and its partner pauses
  std::vector<std::vector<std::pair<int, int>>> rounds;
  for (int round = 0; round < others && n > 1; ++round) {
    rounds.emplace_back();
    // Round-robin tournament: the last participant stays and the others rotate around it. Those at the same distance
    // from the partner of the last one, on its two sides, are paired.
    for (int distance = 0; distance < seats / 2; ++distance) {
      const int one = distance == 0 ? others : (round + distance) % others;
      const std::pair<int, int> pair = std::minmax(one, (round + others - distance) % others);
      if (pair.second < n) rounds.back().push_back(pair);
    }
  }
  return rounds;
}

}  // namespace frostpipe
