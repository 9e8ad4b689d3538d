#pragma once
#include <vector>

#include "plan/plan.h"

namespace frostpipe {

/// The content of a node's activation cache at some step, assuming room for all samples. Both lists ascend by layer.
struct CacheContent {
  std::vector<CacheFound> unseen;  // as fractions of the samples that the running epoch has yet to use
  std::vector<CacheFound> seen;    // samples that the running epoch has used already, as fractions of all samples
  bool operator==(const CacheContent&) const = default;
};

/// Returns the content after steps [from_step, to_step) in epochs of steps_per_epoch (> 0). Every sample used in these
/// steps gets an entry at `boundary`, or keeps its entry if the cache is not used (boundary 0).
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

/// Returns the parts from the step of a freeze to `end_step`. Until the end of the running epoch no sample is found at
/// the new boundary (fill). In the next epoch those samples are found that came after the freeze, then all (hit). A
/// sample that is not found at the boundary starts from its entry in `content`, if there is one. `capacity` is the
/// fraction of samples for which there is room.
std::vector<CachePart> cache_parts(int first_trainable_layer, int from_step, int end_step, int steps_per_epoch,
                                   double capacity, CacheContent content);

/// Returns whether some samples are found in the cache in any part. A cache that is only filled costs time and saves
/// nothing.
bool find_something(const std::vector<CachePart>& parts);

/// Returns the fraction of samples that fit into the cache: its memory and disk limits, divided by samples x mean
/// tokens x hidden size x bytes per value, at most 1; 0 if the profile does not know its samples.
double cache_capacity(const CacheLimits& limits, const Profile& profile);

}  // namespace frostpipe
