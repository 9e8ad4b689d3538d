#include "cli/training/replanning.h"

#include <fmt/format.h>

#include <utility>

#include "cli/plans/plan_limits.h"
#include "cli/plans/replan_text.h"
#include "cli/shared/output.h"
#include "executor/elastic/seats.h"
#include "planner/published/paper_auto_pipe.h"
#include "planner/replan.h"

namespace frostpipe {
namespace {

PlanOptions plan_options_of(const TrainOptions& train, int steps_per_epoch) {
  PlanOptions options{.method = train.plan.method,
                      .global_batch_size = train.plan.global_batch_size,
                      .num_steps = train.plan.num_steps,
                      .tokens = 0,
                      .optimizer = train.plan.optimizer,
                      .dtype = train.plan.dtype,
                      .partitioner = train.plan.partitioner,
                      .schedule = "",
                      .recompute = train.plan.phases.front().recompute,
                      .steps_per_epoch = steps_per_epoch,
                      .use_cache = true,
                      .cache = train.plan.cache,
                      .ignore_memory_limit = !train.plan.memory_limited,
                      .freeze = train.freeze.options};
  if (train.freeze.rule == FreezePolicy::Rule::fixed)
    options.forecast = forecast_fixed(train.freeze.fixed_layers, options.num_steps, train.freeze.options);
  return options;
}

/// The devices that the ranks run on.
Cluster devices_of(const ReplanRequest& request, const Cluster& cluster) {
  return request.seats.empty() ? cluster : remaining(cluster, request.seats);
}

/// AutoPipe, AutoDP and AutoCache when the freeze rule has decided: shorter pipelines, more replicas, cached
/// activations, where that pays.
Replan elastic_replan(const TrainOptions& train, Profile profile, Cluster cluster, int steps_per_epoch) {
  PlanOptions options = plan_options_of(train, steps_per_epoch);
  return [=, profile = std::move(profile), reserved = with_memory_reserve(std::move(cluster), kMemoryReserve),
          content = CacheContent{}, step = 0](const ReplanRequest& request) mutable -> ReplanAnswer {
    options.tokens = request.current.tokens;
    const int boundary = request.current.cache.on ? request.current.first_trainable_layer : 0;
    content = advanced(std::move(content), boundary, std::exchange(step, request.from_step), request.from_step,
                       steps_per_epoch);
    auto result = replan(profile, devices_of(request, reserved), options, request, content);
    if (const auto* none = std::get_if<Infeasible>(&result)) {
      print_note(fmt::format("step {}: the layout is kept: {}", request.from_step, none->reason));
      return {{}, "the layout is kept: " + none->reason};
    }
    auto& considered = std::get<ReplanResult>(result);
    std::string explanation = explanation_of(request, considered, profile.model);
    return {std::move(considered.chosen.phases), std::move(explanation)};
  };
}

/// The published rule: whether or not it is faster.
Replan published_replan(const TrainOptions& train, Profile profile, Cluster cluster) {
  PlanOptions options{.method = train.plan.method, .global_batch_size = train.plan.global_batch_size};
  options.optimizer = train.plan.optimizer;
  options.dtype = train.plan.dtype;
  options.partitioner = train.plan.partitioner;
  options.schedule = "GPipe";
  options.recompute = train.plan.phases.front().recompute;
  options.ignore_memory_limit = !train.plan.memory_limited;
  return [=, profile = std::move(profile),
          cluster = std::move(cluster)](const ReplanRequest& request) mutable -> ReplanAnswer {
    options.tokens = request.current.tokens;
    auto next = next_published_phase(profile, devices_of(request, cluster), options, request.current,
                                     request.first_trainable_layer, request.from_step);
    if (auto* phase = std::get_if<Phase>(&next)) return {{std::move(*phase)}, "by the published rule"};
    const std::string& reason = std::get<Infeasible>(next).reason;
    print_note(fmt::format("step {}: the layout is kept: {}", request.from_step, reason));
    return {{}, "the layout is kept: " + reason};
  };
}

}  // namespace

bool replans(const TrainOptions& train) {
  return train.freeze.rule != FreezePolicy::Rule::plan && replans(train.plan.method);
}

Replan make_replan(const TrainOptions& train, Profile profile, Cluster cluster, int steps_per_epoch) {
  if (train.plan.method == PlanMethod::pipetransformer_published)
    return published_replan(train, std::move(profile), std::move(cluster));
  return elastic_replan(train, std::move(profile), std::move(cluster), steps_per_epoch);
}

Replan make_recovery(const TrainOptions& train, std::function<Profile()> load_profile,
                     std::function<Cluster()> load_cluster, int steps_per_epoch) {
  return [=, options = plan_options_of(train, steps_per_epoch)](const ReplanRequest& request) mutable -> ReplanAnswer {
    options.tokens = request.current.tokens;
    const Cluster cluster = devices_of(request, with_memory_reserve(load_cluster(), kMemoryReserve));
    auto result = replan(load_profile(), cluster, options, request, CacheContent{});
    if (const auto* none = std::get_if<Infeasible>(&result)) return {{}, none->reason};
    Continuation& chosen = std::get<ReplanResult>(result).chosen;
    return {request.forecast ? along_the_forecast(chosen) : std::move(chosen.phases), "by the planner"};
  };
}

}  // namespace frostpipe
