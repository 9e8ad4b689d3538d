#include "planner/make_plan.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "planner/fixed_layout.h"
#include "planner/method_table.h"
#include "planner/search/placement.h"
#include "profiles/device_type.h"

namespace frostpipe {
namespace {

void require_possible_length(const Cluster& cluster, const PlanOptions& options) {
  const int wanted = options.pipeline_parallel_size;
  const int longest = devices_to_use(cluster, options) / options.tensor_parallel_size;
  const bool is_data_parallel = options.method == PlanMethod::data_parallel;
  if (wanted == 0 || (longest % wanted == 0 && (!is_data_parallel || wanted == 1))) return;
  throw InvalidInput(
      "pipeline length",
      is_data_parallel
          ? "must be 1 for data-parallel"
          : fmt::format("must divide {}, the number of ranks divided by the tensor-parallel size", longest),
      std::to_string(wanted));
}

void require_possible_schedule(const PlanMethodEntry& method, const PlanOptions& options) {
  const std::string_view only = method.only_schedule;
  if (only.empty() || options.schedule.empty() || options.schedule == only) return;
  throw InvalidInput("schedule",
                     fmt::format("must be {} for the method {}, or left open", only, to_string(method.method)),
                     options.schedule);
}

}  // namespace

PlanResult make_plan(const PlanningProblem& problem, const ReplanObserver& observe) {
  const PlanMethodEntry& method = entry_of(problem.options.method);
  require_possible_schedule(method, problem.options);
  const PlanOptions options = method.adapted ? method.adapted(problem.options) : problem.options;
  const PlanningProblem adapted{problem.profile, problem.cluster, options};
  require_meaningful(adapted);
  require_possible_length(adapted.cluster, options);
  auto phases = method.plan(adapted, observe);
  if (const auto* none = std::get_if<Infeasible>(&phases)) return *none;
  for (const Phase& phase : std::get<std::vector<Phase>>(phases))
    if (std::string why = why_tensor_ranks_are_apart(adapted.cluster, phase.layout); !why.empty())
      return Infeasible{std::move(why)};
  return plan_of(adapted, std::get<std::vector<Phase>>(std::move(phases)));
}

TrainingPlan plan_of(const PlanningProblem& problem, std::vector<Phase> phases) {
  const auto& [profile, cluster, options] = problem;
  TrainingPlan plan;
  plan.method = options.method;
  plan.world_size = static_cast<int>(cluster.devices.size());
  plan.threads_per_rank = threads_of(cluster.devices.front().type);
  plan.global_batch_size = options.global_batch_size;
  plan.num_steps = options.num_steps;
  plan.optimizer = options.optimizer;
  plan.dtype = options.dtype;
  plan.frozen_dtype = profile.frozen_dtype;
  plan.memory_limited = !options.ignore_memory_limit;
  plan.partitioner = options.partitioner;
  const bool may_cache = options.method == PlanMethod::pipetransformer || !replicates(options);
  if (may_cache && options.use_cache) plan.cache = options.cache;
  plan.phases = std::move(phases);
  plan.provenance.model_name = profile.model.name;
  plan.provenance.model_fingerprint = fingerprint(profile.model);
  plan.provenance.version = std::string(FROSTPIPE_VERSION);
  return plan;
}

}  // namespace frostpipe
