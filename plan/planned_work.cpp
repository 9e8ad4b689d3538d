#include "plan/planned_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "profiles/error.h"

namespace frostpipe {

int planned_value(std::string_view option, std::optional<int> given, std::optional<int> planned, int otherwise,
                  std::string_view source) {
  if (given && planned && *given != *planned) {
    throw InvalidInput(fmt::format("{} {}: {} was made for {}; profile and plan again with {} {}, or leave it out",
                                   option, *given, source, *planned, option, *given));
  }
  return planned.value_or(given.value_or(otherwise));
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
  throw InvalidInput(
      fmt::format("{}: has samples of {} tokens to train on, but {} has memory for {} at most, the longest of {}; "
                  "profile with this data and plan again",
                  data, longest_tokens, source, planned, plan.workload->name));
}

}  // namespace frostpipe
