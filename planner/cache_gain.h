#pragma once
#include <optional>
#include <vector>

#include "planner/replan.h"

// These functions tell whether the activation cache pays off in the continuations that replan() compared after a
// freeze.

namespace frostpipe {

/// Return the candidate with the least predicted time among those with, or without, the cache; nullptr if there is
/// none. The pointer is valid as long as `result`.
const Continuation* best_with_cache(const ReplanResult& result);
const Continuation* best_without_cache(const ReplanResult& result);

/// The cost of filling the cache and the time saved by hits, compared with the layout of the fill without a cache.
struct CacheGain {
  Nanoseconds fill_extra_ns = 0;  // additional time per step while the cache fills
  int fill_steps = 0;
  /// Time saved per step by the last phase, which finds the most samples and may have another layout.
  Nanoseconds hit_saved_ns = 0;
  bool operator==(const CacheGain&) const = default;
};

/// Returns the gain of `cached`, which must use the cache; none if `ways` does not have the layout that it begins with
/// without a cache.
std::optional<CacheGain> cache_gain(const Continuation& cached, const std::vector<Continuation>& ways);

/// Returns the number of steps with hits after which filling has paid off; none if a hit saves nothing.
std::optional<double> break_even_hit_steps(const CacheGain& gain);

}  // namespace frostpipe
