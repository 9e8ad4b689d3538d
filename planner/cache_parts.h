#pragma once
#include <vector>

#include "plan/plan.h"

namespace frostpipe {

/// What a node's activation cache holds at some step, if it had room for all samples; by layer ascending.
struct CacheContent {
  std::vector<CacheFound> waiting;  // of the samples that the running epoch has still to bring
  std::vector<CacheFound> come;     // of all samples, those that it has brought; none of them comes again in it
  bool operator==(const CacheContent&) const = default;
};

/// The content after steps [from_step, to_step) in epochs of steps_per_epoch: every sample that comes has an entry at
/// `boundary` then, or, if the cache is not used (boundary 0), what it had.
CacheContent advanced(CacheContent content, int boundary, int from_step, int to_step, int steps_per_epoch);

/// Whether, for every layer, at least as many samples as in `other` have something cached at it or after it.
bool covers(const CacheContent& content, const CacheContent& other);

/// A stretch of a run in which the cache is used in one way.
struct CachePart {
  int from_step = 0;
  int end_step = 0;
  CacheUse use;
  bool operator==(const CachePart&) const = default;
};

/// The parts from the step of a freeze to `end_step`: until the end of the running epoch no sample is at the new
/// boundary (fill); in the next epoch those are that came after the freeze; then all are (hit). The others start from
/// what `content` holds. `capacity`: fraction of the samples that have a slot.
std::vector<CachePart> cache_parts(int first_trainable_layer, int from_step, int end_step, int steps_per_epoch,
                                   double capacity, CacheContent content);

/// Whether any sample is found in any of them: a cache that is only filled costs and saves nothing.
bool find_something(const std::vector<CachePart>& parts);

/// Fraction of the samples that fit: limits against samples x mean tokens x hidden size.
double cache_capacity(const CacheLimits& limits, const Profile& profile);

}  // namespace frostpipe
