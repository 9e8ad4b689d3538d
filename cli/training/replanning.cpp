#include "cli/training/replanning.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/plans/replan_text.h"
#include "cli/shared/output.h"
#include "executor/elastic/logical_ranks.h"
#include "planner/memory_reserve.h"
#include "planner/run_replanner.h"

namespace frostpipe {
namespace {

/// Returns the options of re-planning. They allow a cache only if the run may have opened one, see RendezvousRound.
PlanOptions options_of(const TrainOptions& train, int steps_per_epoch) {
  PlanOptions options = replan_options(train.plan, train.freeze.options, steps_per_epoch);
  const bool is_planned = std::ranges::any_of(train.plan.phases, [](const Phase& phase) { return phase.cache.on; });
  options.use_cache = options.use_cache && (is_planned || train.freeze.rule != FreezePolicy::Rule::plan);
  if (train.freeze.rule == FreezePolicy::Rule::fixed)
    options.forecast = forecast_fixed(train.freeze.fixed_layers, options.num_steps, train.freeze.options);
  return options;
}

/// Returns the devices that the ranks run on.
Cluster devices_of(const ReplanRequest& request, const Cluster& cluster) {
  return request.logical_ranks.empty() ? cluster : remaining(cluster, request.logical_ranks);
}

/// Returns the cluster without the memory that the plan leaves free.
Cluster to_plan_for(const TrainOptions& train, Cluster cluster) {
  return with_memory_reserve(std::move(cluster), train.plan.memory_reserve);
}

/// Tells the user that no other layout fits, and the run to keep its layout.
ReplanAnswer keep_the_layout(const ReplanRequest& request, const Infeasible& none) {
  print_note(fmt::format("step {}: the layout is kept: {}", request.from_step, none.reason));
  return {{}, "the layout is kept: " + none.reason};
}

/// Answers a decision of the freeze rule with shorter pipelines, more replicas and cached activations (AutoPipe, AutoDP
/// and AutoCache), if they pay.
Replan elastic_replan(const TrainOptions& train, const Profile& profile, Cluster cluster, int steps_per_epoch) {
  return [planner = RunReplanner(profile, options_of(train, steps_per_epoch)), model = profile.model,
          cluster = std::move(cluster)](const ReplanRequest& request) mutable -> ReplanAnswer {
    auto result = planner.replan(request, devices_of(request, cluster));
    if (const auto* none = std::get_if<Infeasible>(&result)) return keep_the_layout(request, *none);
    auto& considered = std::get<ReplanResult>(result);
    std::string explanation = explanation_of(request, considered, model);
    return {std::move(considered.chosen.phases), std::move(explanation)};
  };
}

/// Answers by the published rule, whether or not its layout is faster.
Replan published_replan(const TrainOptions& train, Profile profile, Cluster cluster) {
  return [plan = train.plan, profile = std::move(profile),
          cluster = std::move(cluster)](const ReplanRequest& request) -> ReplanAnswer {
    auto next = replan_as_published(plan, request, profile, devices_of(request, cluster));
    if (const auto* none = std::get_if<Infeasible>(&next)) return keep_the_layout(request, *none);
    return {{std::get<Phase>(std::move(next))}, "by the published rule"};
  };
}

}  // namespace

bool replans(const TrainOptions& train) {
  return train.freeze.rule != FreezePolicy::Rule::plan && replans(train.plan.method);
}

Replan make_replan(const TrainOptions& train, Profile profile, Cluster cluster, int steps_per_epoch) {
  cluster = to_plan_for(train, std::move(cluster));
  if (train.plan.method == PlanMethod::pipetransformer_published)
    return published_replan(train, std::move(profile), std::move(cluster));
  return elastic_replan(train, profile, std::move(cluster), steps_per_epoch);
}

Replan make_recovery(const TrainOptions& train, OnLoss on_loss, std::function<Profile()> load_profile,
                     std::function<Cluster()> load_cluster, int steps_per_epoch) {
  return [=, options = options_of(train, steps_per_epoch)](const ReplanRequest& request) -> ReplanAnswer {
    const Cluster cluster = devices_of(request, to_plan_for(train, load_cluster()));
    const Profile profile = load_profile();
    const PlanningProblem problem{profile, cluster, options};
    std::variant<std::vector<Phase>, Infeasible> phases;
    std::string explanation;
    if (on_loss == OnLoss::reroute) {
      const LossOutlook outlook = look_at_loss(problem, request);
      phases = phases_after(outlook);
      explanation = to_string(outlook);
    } else {
      phases = replan_after_loss(problem, request);
    }
    if (const auto* none = std::get_if<Infeasible>(&phases)) return {{}, none->reason};
    return {std::get<std::vector<Phase>>(std::move(phases)), std::move(explanation)};
  };
}

}  // namespace frostpipe
