#include "planner/deadline.h"

#include <fmt/format.h>

#include <map>

#include "base/error.h"
#include "planner/make_plan.h"
#include "planner/run_planner.h"
#include "simulator/simulate.h"

namespace frostpipe {
namespace {

constexpr int kHundredths = 100;

std::vector<FreezeEvent> delayed(const std::vector<FreezeEvent>& events, int delay_steps, int num_steps) {
  std::vector<FreezeEvent> later;
  for (FreezeEvent event : events) {
    event.from_step = std::max(1, event.from_step + delay_steps);
    if (event.from_step < num_steps) later.push_back(event);
  }
  return later;
}

double trained_share(const std::vector<FreezeEvent>& events, int num_blocks, int num_steps) {
  double frozen_steps = 0;
  int frozen = 0;
  for (const FreezeEvent& event : events) {
    if (event.frozen_blocks <= frozen) continue;
    frozen_steps += static_cast<double>(event.frozen_blocks - frozen) * (num_steps - event.from_step);
    frozen = event.frozen_blocks;
  }
  return 1 - frozen_steps / (static_cast<double>(num_blocks) * num_steps);
}

}  // namespace

std::variant<DeadlinePlan, Infeasible> plan_for_deadline(const PlanningProblem& problem, Nanoseconds deadline_ns) {
  const auto& [profile, cluster, options] = problem;
  const std::vector<FreezeEvent> events = forecast_of(profile.model, options);
  if (events.empty())
    throw InvalidInput("deadline",
                       "needs a forecast that freezes a block within the run (try another forecast, or more steps)",
                       "one without freezes");
  const int first = events.front().from_step, steps = options.num_steps;
  std::map<int, std::variant<DeadlinePlan, Infeasible>> known;  // key: the first freeze in hundredths of the run
  const auto at = [&](int hundredths) -> const std::variant<DeadlinePlan, Infeasible>& {
    const auto [entry, is_new] = known.try_emplace(hundredths);
    if (!is_new) return entry->second;
    const int delay = static_cast<int>(static_cast<std::int64_t>(steps) * hundredths / kHundredths) - first;
    PlanOptions later = options;
    later.forecast = delayed(events, delay, steps);
    PlanResult made = make_plan({profile, cluster, later});
    if (auto* none = std::get_if<Infeasible>(&made)) {
      entry->second = std::move(*none);
    } else {
      DeadlinePlan plan{.plan = std::get<TrainingPlan>(std::move(made)),
                        .delay_steps = delay,
                        .trained_share = trained_share(*later.forecast, num_blocks(profile.model), steps)};
      plan.predicted_ns = predicted_run_ns(plan.plan);
      entry->second = std::move(plan);
    }
    return entry->second;
  };
  const auto in_time = [&](int hundredths) {
    const auto* plan = std::get_if<DeadlinePlan>(&at(hundredths));
    return plan && plan->predicted_ns <= deadline_ns;
  };
  if (in_time(kHundredths)) return at(kHundredths);
  if (!in_time(0)) {
    if (const auto* none = std::get_if<Infeasible>(&at(0))) return *none;
    return Infeasible{
        fmt::format("with every freeze as early as the forecast allows, the run takes {}, more than the deadline of {}",
                    format_duration(std::get<DeadlinePlan>(at(0)).predicted_ns), format_duration(deadline_ns))};
  }
  int early = 0, late = kHundredths;  // `early` meets the deadline, `late` does not
  while (late - early > 1) (in_time((early + late) / 2) ? early : late) = (early + late) / 2;
  return at(early);
}

}  // namespace frostpipe
