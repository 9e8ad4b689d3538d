#include "planner/method_table.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "planner/fixed_layout.h"
#include "planner/published/paper_auto_pipe.h"
#include "planner/published/published_layouts.h"
#include "planner/search/freeze_in_place.h"
#include "planner/whole_run.h"

namespace frostpipe {
namespace {

using OnePhaseFunction = std::variant<Phase, Infeasible> (*)(const PlanningProblem&);

/// Plans a single phase for the whole run.
template <OnePhaseFunction function>
PlannedPhases one_phase(const PlanningProblem& problem, const ReplanObserver& /*observe*/) {
  auto phase = function(problem);
  if (auto* none = std::get_if<Infeasible>(&phase)) return std::move(*none);
  return std::vector<Phase>{std::get<Phase>(std::move(phase))};
}

using NextPhaseFunction = std::variant<Phase, Infeasible> (*)(const PlanningProblem&, const Phase&, int, int);

/// Plans phase after phase along the forecast, with a rule that looks only at the next freeze.
template <OnePhaseFunction start, NextPhaseFunction next>
PlannedPhases by_rule(const PlanningProblem& problem, const ReplanObserver& /*observe*/) {
  auto phase = start(problem);
  if (auto* none = std::get_if<Infeasible>(&phase)) return std::move(*none);
  return phases_by_rule(problem, std::get<Phase>(phase), next);
}

PlannedPhases pipetransformer(const PlanningProblem& problem, const ReplanObserver& observe) {
  std::vector<int> lengths;
  if (problem.options.pipeline_parallel_size > 0) lengths.push_back(problem.options.pipeline_parallel_size);
  return best_whole_run(problem, std::move(lengths), observe);
}

PlannedPhases pipetransformer_without_replicas(const PlanningProblem& problem, const ReplanObserver& observe) {
  const int length = problem.options.pipeline_parallel_size > 0 ? problem.options.pipeline_parallel_size
                                                                : longest_pipeline(problem.cluster, problem.options);
  return best_whole_run(problem, {length}, observe);
}

/// Returns the options with all that the published method fixes: partitioner, schedule, and no cache.
PlanOptions as_published(PlanOptions options) {
  options.partitioner = Partitioner::pipetransformer_greedy;
  options.schedule = "GPipe";
  options.use_cache = false;
  return options;
}

PlanOptions with_slices(PlanOptions options) {
  options.schedule = "TeraPipe";
  return options;
}

}  // namespace

const std::vector<PlanMethodEntry>& method_table() {
  static const std::vector<PlanMethodEntry> table = {
      {PlanMethod::data_parallel, "iteration time", one_phase<data_parallel_phase>},
      {PlanMethod::static_pipeline, "iteration time", one_phase<best_static_phase>},
      {PlanMethod::exact, "bound of the slowest stage", one_phase<least_bound_phase>},
      {PlanMethod::equal_split, "iteration time", one_phase<equal_split_phase>},
      {PlanMethod::pipedream, "slowest stage", one_phase<pipedream_phase>, nullptr, "1F1B"},
      {PlanMethod::pipedream_2bw, "throughput without a bubble", one_phase<pipedream_2bw_phase>, nullptr,
       "PipeDream-2BW"},
      {PlanMethod::ptd_p, "iteration time", one_phase<ptd_p_phase>, nullptr, "1F1B"},
      {PlanMethod::terapipe, "time of all slices through all stages", one_phase<terapipe_phase>, with_slices,
       "TeraPipe"},
      {PlanMethod::timely_freeze, "iteration time", one_phase<best_static_phase>},
      {PlanMethod::pipetransformer, "run time", pipetransformer},
      {PlanMethod::freeze_only, "iteration time", by_rule<best_static_phase, freeze_in_place>},
      {PlanMethod::pipetransformer_published, "iteration time", by_rule<longest_pipeline_phase, next_published_phase>,
       as_published, "GPipe"},
      {PlanMethod::pipetransformer_without_replicas, "run time", pipetransformer_without_replicas},
  };
  return table;
}

const PlanMethodEntry& entry_of(PlanMethod method) {
  const auto& table = method_table();
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const PlanMethodEntry& entry) { return entry.method == method; });
  if (found == table.end())
    throw InvalidInput("method", "must name one method; auto chooses between static and data-parallel",
                       to_string(method));
  return *found;
}

}  // namespace frostpipe
