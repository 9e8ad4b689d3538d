#include "planner/serving/unused_class.h"

#include <algorithm>

#include "planner/serving/pipeline_candidates.h"
#include "planner/serving/sized_plan.h"

namespace frostpipe {
namespace {

/// The pipelines that the method chooses from.
ServingProblem as_solved(const ServingProblem& problem, ServingMethod method) {
  if (method == ServingMethod::ppipe_np) return without_pipelines(problem);
  ServingProblem solved = problem;
  if (method == ServingMethod::ppipe_dart) solved.most_share = 1;
  return solved;
}

bool is_in_a_pipeline(const ServingProblem& problem, const ServingPlan& plan, int device_class) {
  for (std::size_t n = 0; n < problem.models.size(); ++n)
    for (const CandidatePipeline& pipeline :
         pipeline_candidates(problem, problem.models[n], plan.models[n].building_requests_per_second))
      if (std::ranges::find(pipeline.pools, device_class, &CandidatePool::device_class) != pipeline.pools.end())
        return true;
  return false;
}

}  // namespace

std::string why_unused(const ServingProblem& problem, const ServingPlan& plan, std::string_view device_class) {
  ServingProblem solved = as_solved(problem, plan.method);
  const auto index =
      static_cast<int>(std::ranges::find(problem.classes, device_class, &DeviceClass::name) - problem.classes.begin());
  if (is_in_a_pipeline(solved, plan, index)) {
    if (plan.method == ServingMethod::ppipe_dart) return "the heuristic gives it nothing";
    return plan.objective == ServingObjective::cost ? "the required rates are cheaper without it"
                                                    : "it would not raise the least throughput per weight";
  }
  solved.memory_limit_bytes.clear();
  return is_in_a_pipeline(solved, plan, index) ? "what a pipeline would put on it does not fit into its memory"
                                               : "no pipeline with it answers in time";
}

}  // namespace frostpipe
