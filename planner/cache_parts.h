#pragma once
#include <vector>

#include "plan/plan.h"

namespace frostpipe {

/// The content of a node's activation cache at some step, assuming room for all samples; by layer ascending.
struct CacheContent {
  std::vector<CacheFound> waiting;  // fractions of the samples that the running epoch has yet to use
  std::vector<CacheFound> come;     // fractions of all samples, for those that the running epoch has used already
  bool operator==(const CacheContent&) const = default;
};

/// Returns the content after steps [from_step, to_step) in epochs of steps_per_epoch. Every sample used then has
/// an entry at `boundary`, or keeps its entry if the cache is not used (boundary 0).
CacheContent advanced(CacheContent content, int boundary, int from_step, int to_step, int steps_per_epoch);

/// Returns whether for every layer at least as many samples as in `other` have an activation cached at that layer or
/// later.
bool covers(const CacheContent& content, const CacheContent& other);

/// A stretch of a run in which the use of the cache does not change.
struct CachePart {
  int from_step = 0;
  int end_step = 0;
  CacheUse use;
  bool operator==(const CachePart&) const = default;
};

/// Returns the parts from the step of a freeze to `end_step`. Until the end of the running epoch no sample is cached at
/// the new boundary (fill); in the next epoch those are that came after the freeze; then all are (hit). The others
/// start from what `content` has of them. `capacity` is the fraction of samples for which there is room.
std::vector<CachePart> cache_parts(int first_trainable_layer, int from_step, int end_step, int steps_per_epoch,
                                   double capacity, CacheContent content);

/// Returns whether samples are found in any part. A cache that is only filled costs time and saves nothing.
bool find_something(const std::vector<CachePart>& parts);

/// Returns the fraction of samples that fit into the cache: its limits over samples x mean tokens x hidden size.
double cache_capacity(const CacheLimits& limits, const Profile& profile);

}  // namespace frostpipe
