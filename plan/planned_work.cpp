#include "plan/planned_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "plan/memory.h"

namespace frostpipe {

void require_planned_frozen_dtype(const TrainingPlan& plan, const Profile& profile, std::string_view profile_source,
                                  std::string_view plan_source) {
  if (plan.frozen_dtype == profile.frozen_dtype) return;
  throw InvalidInput(fmt::format(
      "{}: frozen_dtype: frozen layers were measured in {}, but {} was made for {}; give the profile that it was made "
      "from, or plan again from this one",
      profile_source, to_string(profile.frozen_dtype.value_or(plan.dtype)), plan_source,
      to_string(plan.frozen_dtype.value_or(plan.dtype))));
}

int planned_longest_tokens(const TrainingPlan& plan) {
  int longest = std::numeric_limits<int>::max();
  for (const Phase& phase : plan.phases) longest = std::min(longest, std::max(phase.tokens, phase.longest_tokens));
  return longest;
}

void require_planned_lengths(const TrainingPlan& plan, int longest_tokens, std::string_view data,
                             std::string_view source) {
  const int planned = planned_longest_tokens(plan);
  if (!plan.workload || longest_tokens <= planned) return;
  throw InvalidInput(fmt::format(
      "{}: has samples of {} tokens to train on, but {} has memory for {} at most, the longest sample of {}; "
      "profile with this data and plan again",
      data, longest_tokens, source, planned, plan.workload->name));
}

std::string micro_batches_beyond_memory(const TrainingPlan& plan, const Cluster& cluster,
                                        std::span<const std::int64_t> largest_tokens, std::string_view source) {
  for (std::size_t i = 0; i < plan.phases.size(); ++i) {
    const std::int64_t planned = planned_micro_batch(plan.phases[i], plan.global_batch_size).all_tokens();
    if (largest_tokens[i] <= planned) continue;
    const double growth = static_cast<double>(largest_tokens[i]) / static_cast<double>(planned);
    const std::vector<Bytes>& peaks = plan.phases[i].predicted.peak_memory_bytes;
    for (std::size_t rank = 0; rank < cluster.devices.size(); ++rank) {
      const auto& limit = cluster.devices[rank].memory_limit_bytes;
      if (!limit || (rank < peaks.size() && static_cast<double>(peaks[rank]) * growth <= static_cast<double>(*limit)))
        continue;
      return fmt::format(
          "{}: phase {} has memory for micro-batches of {} tokens, and this run makes one of {}: rank {} may need more "
          "than its {}; plan with more micro-batches (plan --fix m=M)",
          source, i, planned, largest_tokens[i], rank, format_bytes(*limit));
    }
  }
  return "";
}

}  // namespace frostpipe
