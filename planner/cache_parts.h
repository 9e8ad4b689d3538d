#pragma once
#include <vector>

#include "planner/make_plan.h"

namespace frostpipe {

/// What a node's activation cache holds at some step.
struct CacheContent {
  int layer = 0;     // boundary; 0 = nothing
  double old = 0;    // fraction of the samples with an entry from before the running epoch
  double fresh = 0;  // fraction of the samples that the running epoch has brought since the cache was used: all have one, none comes again in it
  bool operator==(const CacheContent&) const = default;
};

/// A stretch of a run in which the cache is used in one way.
struct CachePart {
  int from_step = 0;
  int end_step = 0;
  CacheUse use;
  bool operator==(const CachePart&) const = default;
};

/// The parts from the step of a freeze to `end_step`, in epochs of n = steps_per_epoch: until the end of the running epoch no sample comes a second
/// time, so none is at the new boundary (fill); in the next epoch those are that came after the freeze; then all are (hit). The others start
/// from what the cache held before, as far as it was there when they came. `capacity`: fraction of the samples that have a slot.
std::vector<CachePart> cache_parts(int first_trainable_layer, int from_step, int end_step, int steps_per_epoch, double capacity,
                                   const CacheContent& before);

/// What the cache holds before `step` if it was used as in `parts`.
CacheContent cache_content_at(const std::vector<CachePart>& parts, int first_trainable_layer, int step, int steps_per_epoch, double capacity);

/// Fraction of the samples that fit: limits against samples x mean tokens x hidden size.
double cache_capacity(const CacheLimits& limits, const Profile& profile);

}  // namespace frostpipe
