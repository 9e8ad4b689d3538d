#include "serving/planner/unused_class.h"

#include <set>
#include <vector>

#include "serving/planner/pipeline_candidates.h"
#include "serving/planner/sized_plan.h"

namespace frostpipe {
namespace {

/// Returns the indices of the classes that occur in any pipeline of the problem.
std::set<int> classes_in_pipelines(const ServingProblem& problem, const ServingPlan& plan) {
  std::set<int> classes;
  for (std::size_t n = 0; n < problem.models.size(); ++n)
    for (const CandidatePipeline& pipeline :
         pipeline_candidates(problem, problem.models[n], plan.models[n].building_requests_per_second))
      for (const CandidatePool& pool : pipeline.pools) classes.insert(pool.device_class);
  return classes;
}

/// Returns the reason for a class that pipelines could use.
std::string why_not_chosen(const ServingPlan& plan) {
  if (plan.method == ServingMethod::ppipe_dart) return "DART-r assigns no model to it";
  if (!is_proven_best(plan)) return "the search, which stopped at its limit, found no use for it";
  return plan.objective == ServingObjective::cost ? "the required rates cost less without it"
                                                  : "it would not raise the least throughput per weight";
}

/// Returns the reason for a class that no pipeline can use, although one could without memory limits.
std::string whose_memory_is_too_small(ServingProblem problem, const ServingPlan& plan, int device_class) {
  problem.memory_limit_bytes[device_class].reset();
  return classes_in_pipelines(problem, plan).contains(device_class)
             ? "what a pipeline would put on it does not fit into its memory"
             : "what its pipelines would put on other classes does not fit there";
}

}  // namespace

std::map<std::string, std::string> why_unused(const ServingProblem& problem, const ServingPlan& plan) {
  std::map<std::string, std::string> why;
  std::vector<int> unused;
  for (std::size_t k = 0; k < problem.classes.size(); ++k)
    if (devices_in_use(plan, problem.classes[k].name) == 0) unused.push_back(static_cast<int>(k));
  if (unused.empty()) return why;
  const ServingProblem solved = as_solved(problem, plan.method);
  ServingProblem unlimited = solved;
  unlimited.memory_limit_bytes.clear();
  const std::set<int> possible = classes_in_pipelines(solved, plan), in_time = classes_in_pipelines(unlimited, plan);
  for (const int k : unused) {
    std::string& clause = why[problem.classes[k].name];
    if (possible.contains(k))
      clause = why_not_chosen(plan);
    else if (in_time.contains(k))
      clause = whose_memory_is_too_small(solved, plan, k);
    else
      clause = "no pipeline with it answers in time";
  }
  return why;
}

}  // namespace frostpipe
