#include "planner/cache_parts.h"

#include <algorithm>

#include "plan/memory.h"
#include "profiles/error.h"

namespace frostpipe {

std::vector<CachePart> cache_parts(int first_trainable_layer, int from_step, int end_step, int steps_per_epoch, double capacity,
                                   const CacheContent& before) {
  FROSTPIPE_CHECK(steps_per_epoch > 0 && capacity >= 0 && capacity <= 1, "a cache needs epochs");
  const int n = steps_per_epoch;
  const int epoch_end = (from_step / n + 1) * n;
  const double seen = static_cast<double>(epoch_end - from_step) / n;  // of the samples, in the rest of the running epoch
  const bool has_base = before.layer > 0 && before.layer < first_trainable_layer && before.old + before.fresh > 0;
  const auto use = [&](double hit, double based_of_all) {
    const double others = 1 - hit;
    CacheUse made{.on = true, .hit_fraction = hit, .base_layer = 0, .base_fraction = 0};
    if (!has_base || others <= 0 || based_of_all <= 0) return made;
    made.base_layer = before.layer;
    made.base_fraction = std::min(1.0, based_of_all / others);
    return made;
  };
  const std::vector<CachePart> all{
      {from_step, epoch_end, use(0, before.old)},
      {epoch_end, seen < 1 ? epoch_end + n : epoch_end, use(seen * capacity, before.fresh + std::max(0.0, 1 - seen - before.fresh) * before.old)},
      {seen < 1 ? epoch_end + n : epoch_end, end_step, use(capacity, 0)},
  };
  std::vector<CachePart> parts;
  for (CachePart part : all) {
    part.end_step = std::min(part.end_step, end_step);
    if (part.from_step < part.end_step) parts.push_back(part);
  }
  return parts;
}

CacheContent cache_content_at(const std::vector<CachePart>& parts, int first_trainable_layer, int step, int steps_per_epoch, double capacity) {
  if (parts.empty()) return {};
  const int n = steps_per_epoch;
  const int epoch_begin = step / n * n;
  double old = 0;  // every step adds what it did not find
  for (const CachePart& part : parts) {
    const int steps = std::min(part.end_step, epoch_begin) - part.from_step;
    if (steps > 0) old += (1 - part.use.hit_fraction) * steps / n;
  }
  const int fresh_steps = step - std::max(epoch_begin, parts.front().from_step);
  return {first_trainable_layer, std::min(1.0, old) * capacity, capacity * fresh_steps / n};
}

double cache_capacity(const CacheLimits& limits, const Profile& profile) {
  if (!profile.workload || profile.workload->num_samples == 0) return 0;
  const Workload& workload = *profile.workload;
  const int tokens = workload.mean_tokens > 0 ? workload.mean_tokens : workload.tokens;
  const double needed = static_cast<double>(workload.num_samples) * tokens * profile.model.hidden_size * static_cast<double>(bytes_per_value(limits.dtype));
  return needed > 0 ? std::min(1.0, static_cast<double>(limits.memory_bytes + limits.disk_bytes) / needed) : 0;
}

}  // namespace frostpipe
