#include "planner/cache_gain.h"

#include <algorithm>

namespace frostpipe {
namespace {

const Continuation* best_candidate(const ReplanResult& result, bool with_cache) {
  const Continuation* best = nullptr;
  for (const Continuation& way : result.candidates)
    if (way.parts.empty() != with_cache && (!best || way.predicted_ns < best->predicted_ns)) best = &way;
  return best;
}

}  // namespace

const Continuation* best_with_cache(const ReplanResult& result) { return best_candidate(result, true); }

const Continuation* best_without_cache(const ReplanResult& result) { return best_candidate(result, false); }

std::optional<CacheGain> cache_gain(const Continuation& cached, const std::vector<Continuation>& ways) {
  const Phase& fill = cached.phases.front();
  const Phase& hit = cached.phases.back();
  const auto way = std::find_if(ways.begin(), ways.end(), [&](const Continuation& one) {
    return !one.phases.front().cache.on && have_same_pipeline(one.phases.front(), fill);
  });
  if (way == ways.end()) return std::nullopt;
  const Nanoseconds plain_ns = way->phases.front().predicted.iteration_ns;
  return CacheGain{.fill_extra_ns = fill.predicted.iteration_ns - plain_ns,
                   .fill_steps = cached.parts.front().end_step - cached.parts.front().from_step,
                   .hit_saved_ns = plain_ns - hit.predicted.iteration_ns};
}

std::optional<double> break_even_hit_steps(const CacheGain& gain) {
  if (gain.hit_saved_ns <= 0) return std::nullopt;
  return std::max(0.0,
                  static_cast<double>(gain.fill_extra_ns) * gain.fill_steps / static_cast<double>(gain.hit_saved_ns));
}

}  // namespace frostpipe
