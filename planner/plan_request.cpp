#include "planner/plan_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "planner/auto_zero_bubble_plan.h"
#include "planner/make_plan.h"
#include "profiles/device_type.h"
#include "simulator/simulate.h"

namespace frostpipe {
namespace {

std::variant<AutoPlan, Infeasible> as_answer(PlanResult made) {
  if (auto* const none = std::get_if<Infeasible>(&made)) return std::move(*none);
  return AutoPlan{.plan = std::get<TrainingPlan>(std::move(made))};
}

PlannedRun plan_until_deadline(const Profile& profile, const Cluster& cluster, const PlanRequest& request) {
  auto made = plan_for_deadline({profile, cluster, request.options}, *request.deadline_ns);
  if (auto* const none = std::get_if<Infeasible>(&made)) return {.answer = std::move(*none)};
  DeadlinePlan& deadline_plan = std::get<DeadlinePlan>(made);
  return {.answer = AutoPlan{.plan = deadline_plan.plan}, .deadline_plan = std::move(deadline_plan)};
}

bool is_better(const PlannedRun& one, const PlannedRun& other) {
  const auto* const plan = std::get_if<AutoPlan>(&one.answer);
  const auto* const other_plan = std::get_if<AutoPlan>(&other.answer);
  if (!plan || !other_plan) return plan != nullptr && other_plan == nullptr;
  const auto delay_steps = [](const PlannedRun& run) { return run.deadline_plan ? run.deadline_plan->delay_steps : 0; };
  if (delay_steps(one) != delay_steps(other)) return delay_steps(one) > delay_steps(other);
  return predicted_run_ns(plan->plan) < predicted_run_ns(other_plan->plan);
}

/// Checks the request before ZB-H1 replaces the schedule.
void require_auto_zero_bubble(const Profile& profile, const PlanOptions& options) {
  if (options.partitioner != Partitioner::exact)
    throw InvalidInput("schedule AutoZeroBubble", "needs the exact partitioner",
                       fmt::format("used with {}", to_string(options.partitioner)));
  if (!may_use_any_schedule(options))
    throw InvalidInput("schedule AutoZeroBubble",
                       "needs a method that leaves the schedule open (auto, static, freeze-only, pipetransformer or "
                       "pipetransformer-without-replicas)",
                       fmt::format("used with {}", to_string(options.method)));
  require_split_backward(kAutoZeroBubble, profile);
}

/// Makes the fastest of the plan's layout and the alternatives the plan's, and orders the others by their times.
void take_fastest(AutoPlan& answer) {
  std::vector<Phase>& others = answer.alternatives;
  Phase& chosen = answer.plan.phases.front();
  const auto time_of = [](const Phase& phase) { return phase.predicted.iteration_ns; };
  std::ranges::stable_sort(others, {}, time_of);
  if (others.empty() || time_of(others.front()) >= time_of(chosen)) return;
  std::swap(chosen, others.front());
  std::ranges::stable_sort(others, {}, time_of);
  answer.plan.method =
      chosen.layout.pipeline_parallel_size == 1 ? PlanMethod::data_parallel : PlanMethod::static_pipeline;
}

/// Plans with ZB-H1, then changes the order of each phase and alternative for its own costs.
PlannedRun plan_by_auto_zero_bubble(const Profile& profile, const Cluster& cluster, PlanRequest request) {
  require_auto_zero_bubble(profile, request.options);
  request.options.schedule = "ZB-H1";
  PlannedRun planned = plan_run(profile, cluster, request);
  if (auto* const answer = std::get_if<AutoPlan>(&planned.answer)) {
    for (std::vector<Phase>* const phases : {&answer->plan.phases, &answer->alternatives})
      for (Phase& phase : *phases)
        if (phase.schedule == "ZB-H1") phase = with_auto_zero_bubble(phase, {profile, cluster, request.options});
    take_fastest(*answer);
    answer->lower_bound_ns = iteration_lower_bound_ns({profile, cluster, request.options});  // for any order
    if (planned.deadline_plan) {
      planned.deadline_plan->plan = answer->plan;
      planned.deadline_plan->predicted_ns = predicted_run_ns(answer->plan);
    }
  }
  return planned;
}

}  // namespace

PlannedRun plan_run(const Profile& profile, const Cluster& cluster, const PlanRequest& request) {
  if (request.options.schedule == kAutoZeroBubble) return plan_by_auto_zero_bubble(profile, cluster, request);
  if (request.deadline_ns) return plan_until_deadline(profile, cluster, request);
  if (request.options.method == PlanMethod::automatic)
    return {.answer = make_auto_plan({profile, cluster, request.options})};
  PlannedRun planned;
  ReplanObserver observe;
  if (request.keep_replans)
    observe = [&](const ReplanRequest& freeze, const ReplanResult& result) {
      planned.replans.push_back({.request = freeze, .result = result});
    };
  planned.answer = as_answer(make_plan({profile, cluster, request.options}, observe));
  return planned;
}

std::vector<int> threads_to_weigh(const PlanningProblem& problem) {
  const auto& [profile, cluster, options] = problem;
  const bool finds_fastest = options.method == PlanMethod::automatic || options.method == PlanMethod::pipetransformer;
  const bool is_free = options.pipeline_parallel_size == 0 && options.tensor_parallel_size == 1 &&
                       options.data_parallel_size == 0 && options.max_devices == 0 && options.placement.empty() &&
                       options.partition.empty() && options.pins.empty();
  if (!finds_fastest || !is_free) return {1};
  const std::vector<int> measured = measured_threads(profile, cluster);
  return measured.empty() ? std::vector<int>{1} : measured;
}

std::vector<GroupedRun> plan_groupings(const Profile& profile, const Cluster& cluster, const PlanRequest& request,
                                       const std::vector<int>& thread_counts) {
  std::vector<GroupedRun> runs;
  for (const int threads : thread_counts) {
    Cluster grouped = with_threads_per_rank(cluster, threads);
    PlannedRun planned = plan_run(profile, grouped, request);
    runs.push_back({.threads_per_rank = threads, .cluster = std::move(grouped), .planned = std::move(planned)});
  }
  return runs;
}

const GroupedRun& best_grouping(const std::vector<GroupedRun>& runs) {
  return *std::min_element(runs.begin(), runs.end(), [](const GroupedRun& one, const GroupedRun& other) {
    return is_better(one.planned, other.planned);
  });
}

}  // namespace frostpipe
