#include "planner/cache_parts.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "plan/memory.h"

namespace frostpipe {

namespace {

constexpr double kNoFraction = 1e-9;

void add(std::vector<CacheFound>& found, int layer, double fraction) {
  const auto at = std::lower_bound(found.begin(), found.end(), layer,
                                   [](const CacheFound& one, int wanted) { return one.layer < wanted; });
  if (at != found.end() && at->layer == layer)
    at->fraction += fraction;
  else
    found.insert(at, {layer, fraction});
}

/// Returns the fraction of all samples with an activation cached at `layer` or later.
double cached_from(const std::vector<CacheFound>& found, int layer) {
  double sum = 0;
  for (const CacheFound& one : found)
    if (one.layer >= layer) sum += one.fraction;
  return sum;
}

}  // namespace

bool covers(const CacheContent& content, const CacheContent& other) {
  constexpr double kRounding = 1e-9;
  for (const auto& [mine, theirs] : {std::pair(&content.unseen, &other.unseen), std::pair(&content.seen, &other.seen)})
    for (const CacheFound& one : *theirs)
      if (cached_from(*mine, one.layer) + kRounding < cached_from(*theirs, one.layer)) return false;
  return true;
}

CacheContent advanced(CacheContent content, int boundary, int from_step, int to_step, int steps_per_epoch) {
  FROSTPIPE_CHECK(steps_per_epoch > 0, "a cache needs epochs");
  for (int step = from_step; step < to_step;) {
    const int epoch_end = (step / steps_per_epoch + 1) * steps_per_epoch;
    const int end = std::min(to_step, epoch_end);
    const double share = static_cast<double>(end - step) / steps_per_epoch;
    const std::vector<CacheFound> unseen_before = content.unseen;
    if (boundary > 0)
      add(content.seen, boundary, share);
    else
      for (const CacheFound& one : content.unseen) add(content.seen, one.layer, one.fraction * share);
    if (end == epoch_end) content = {.unseen = std::move(content.seen), .seen = {}};
    step = end;
    if (end == epoch_end && content.unseen == unseen_before)
      step += (to_step - step) / steps_per_epoch * steps_per_epoch;  // whole epochs change nothing any more
  }
  return content;
}

std::vector<CachePart> cache_parts(int first_trainable_layer, int from_step, int end_step, int steps_per_epoch,
                                   double capacity, CacheContent content) {
  FROSTPIPE_CHECK(capacity >= 0 && capacity <= 1, "the capacity is a fraction of the samples");
  std::vector<CachePart> parts;
  for (int step = from_step; step < end_step;) {
    CachePart part{.from_step = step,
                   .end_step = std::min(end_step, (step / steps_per_epoch + 1) * steps_per_epoch),
                   .use = {.on = true, .found = {}}};
    for (const auto& [layer, fraction] : content.unseen) {
      if (fraction * capacity > kNoFraction) part.use.found.push_back({layer, std::min(1.0, fraction) * capacity});
    }
    if (fraction_at(content.unseen, first_trainable_layer) > 1 - kNoFraction)
      part.end_step = end_step;  // nothing changes any more
    content = advanced(std::move(content), first_trainable_layer, step, part.end_step, steps_per_epoch);
    step = part.end_step;
    parts.push_back(std::move(part));
  }
  return parts;
}

bool find_something(const std::vector<CachePart>& parts) {
  return std::any_of(parts.begin(), parts.end(), [](const CachePart& part) { return !part.use.found.empty(); });
}

double cache_capacity(const CacheLimits& limits, const Profile& profile) {
  if (!profile.workload || profile.workload->num_samples == 0) return 0;
  const Workload& workload = *profile.workload;
  const double needed = static_cast<double>(workload.num_samples) * workload.tokens * profile.model.hidden_size *
                        static_cast<double>(bytes_per_value(limits.dtype));
  return needed > 0 ? std::min(1.0, static_cast<double>(limits.memory_bytes + limits.disk_bytes) / needed) : 0;
}

}  // namespace frostpipe
