#pragma once
#include <optional>
#include <vector>

#include "planner/replan.h"

// Whether the activation cache pays in the ways to go on after a freeze that replan() looked at.

namespace frostpipe {

/// The candidate with the least predicted time of those that use the cache, and of those that do not; nullptr if there
/// is none. It lives as long as `result`.
const Continuation* best_with_cache(const ReplanResult& result);
const Continuation* best_without_cache(const ReplanResult& result);

/// What filling the cache costs and what hits save, against the same layout without it.
struct CacheGain {
  Nanoseconds fill_extra_ns = 0;  // that a step takes longer while the cache fills
  int fill_steps = 0;
  Nanoseconds hit_saved_ns = 0;  // that a step takes less where every sample is found
  bool operator==(const CacheGain&) const = default;
};

/// Of the layout that `cached` begins with; none where that layout is not among `ways` without a cache.
std::optional<CacheGain> cache_gain(const Continuation& cached, const std::vector<Continuation>& ways);

/// After how many steps with hits the filling has paid; none if a hit saves nothing.
std::optional<double> break_even_hit_steps(const CacheGain& gain);

}  // namespace frostpipe
