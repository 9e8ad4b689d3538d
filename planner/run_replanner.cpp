#include "planner/run_replanner.h"

#include <fmt/format.h>

#include <utility>

#include "planner/published/paper_auto_pipe.h"

namespace frostpipe {
namespace {

std::variant<ReplanResult, Infeasible> replan_by_schedule(const PlanningProblem& problem, const ReplanRequest& request,
                                                          const CacheContent& content) {
  const auto& [profile, cluster, options] = problem;
  if (options.schedule.empty()) return replan(problem, request, content);
  std::string why = "the profile has not measured I and W";
  if (!splits_backward(options.schedule) || knows_split_backward(profile)) {
    auto result = replan(problem, request, content);
    auto* const none = std::get_if<Infeasible>(&result);
    if (!none) return result;
    why = std::move(none->reason);
  }
  PlanOptions other = options;
  other.schedule.clear();
  other.virtual_stages = 0;
  auto result = replan({profile, cluster, other}, request, content);
  if (auto* const found = std::get_if<ReplanResult>(&result))
    found->why_other_schedule = fmt::format("{} is given up: {}", options.schedule, why);
  return result;
}

}  // namespace

PlanOptions replan_options(const TrainingPlan& plan, const FreezeOptions& freeze, int steps_per_epoch) {
  const Phase& first = plan.phases.front();
  const bool is_asked_for = first.schedule != "1F1B" && first.schedule != "GPipe";
  return {.method = plan.method,
          .global_batch_size = plan.global_batch_size,
          .num_steps = plan.num_steps,
          .tokens = 0,
          .optimizer = plan.optimizer,
          .dtype = plan.dtype,
          .partitioner = plan.partitioner,
          .schedule = is_asked_for ? first.schedule : "",
          .virtual_stages = is_asked_for ? first.virtual_stages : 0,
          .recompute = first.recompute,
          .steps_per_epoch = steps_per_epoch,
          .use_cache = true,
          .cache = plan.cache,
          .ignore_memory_limit = !plan.memory_limited,
          .freeze = freeze};
}

RunReplanner::RunReplanner(Profile profile, PlanOptions options)
    : profile_(std::move(profile)), options_(std::move(options)) {}

std::variant<ReplanResult, Infeasible> RunReplanner::replan(const ReplanRequest& request, const Cluster& cluster) {
  options_.tokens = request.current.tokens;
  const int boundary = request.current.cache.on ? request.current.first_trainable_layer : 0;
  content_ = advanced(std::move(content_), boundary, std::exchange(step_, request.from_step), request.from_step,
                      options_.steps_per_epoch);
  return replan_by_schedule({profile_, cluster, options_}, request, content_);
}

std::variant<Phase, Infeasible> replan_as_published(const TrainingPlan& plan, const ReplanRequest& request,
                                                    const Profile& profile, const Cluster& cluster) {
  const PlanOptions options{.method = plan.method,
                            .global_batch_size = plan.global_batch_size,
                            .tokens = request.current.tokens,
                            .optimizer = plan.optimizer,
                            .dtype = plan.dtype,
                            .partitioner = plan.partitioner,
                            .schedule = "GPipe",
                            .recompute = plan.phases.front().recompute,
                            .ignore_memory_limit = !plan.memory_limited};
  return next_published_phase({profile, cluster, options}, request.current, request.first_trainable_layer,
                              request.from_step);
}

std::variant<PhasesAfterLoss, Infeasible> replan_after_loss(const PlanningProblem& problem,
                                                            const ReplanRequest& request) {
  PlanOptions options = problem.options;
  options.tokens = request.current.tokens;
  auto result = replan_by_schedule({problem.profile, problem.cluster, options}, request, CacheContent{});
  if (auto* const none = std::get_if<Infeasible>(&result)) return std::move(*none);
  ReplanResult& found = std::get<ReplanResult>(result);
  return PhasesAfterLoss{.phases = request.forecast ? along_the_forecast(found.chosen) : std::move(found.chosen.phases),
                         .why_other_schedule = std::move(found.why_other_schedule)};
}

}  // namespace frostpipe
