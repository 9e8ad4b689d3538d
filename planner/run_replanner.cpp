#include "planner/run_replanner.h"

#include <utility>

#include "planner/published/paper_auto_pipe.h"

namespace frostpipe {

PlanOptions replan_options(const TrainingPlan& plan, const FreezeOptions& freeze, int steps_per_epoch) {
  return {.method = plan.method,
          .global_batch_size = plan.global_batch_size,
          .num_steps = plan.num_steps,
          .tokens = 0,
          .optimizer = plan.optimizer,
          .dtype = plan.dtype,
          .partitioner = plan.partitioner,
          .schedule = "",
          .recompute = plan.phases.front().recompute,
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
  return frostpipe::replan({profile_, cluster, options_}, request, content_);
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

std::variant<std::vector<Phase>, Infeasible> replan_after_loss(const PlanningProblem& problem,
                                                               const ReplanRequest& request) {
  PlanOptions options = problem.options;
  options.tokens = request.current.tokens;
  auto result = replan({problem.profile, problem.cluster, options}, request, CacheContent{});
  if (auto* const none = std::get_if<Infeasible>(&result)) return std::move(*none);
  Continuation& chosen = std::get<ReplanResult>(result).chosen;
  return request.forecast ? forecast_phases(chosen) : std::move(chosen.phases);
}

}  // namespace frostpipe
