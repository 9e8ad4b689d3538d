#pragma once
#include <variant>
#include <vector>

#include "planner/search/plan_options.h"
#include "serving/planner/pool_sizes.h"
#include "serving/planner/serving_problem.h"

// What the methods of serving/planner/make_serving_plan.h have in common.

namespace frostpipe {

/// Candidates of every model, and the sizes of the best ones' pools.
struct SizedPlan {
  PoolProblem pools;
  PoolSizes sizes;
};

/// The best sizes of the problem's pipelines, whose batches are built at `building` requests per second (per model; 0:
/// in no time).
std::variant<SizedPlan, Infeasible> size_plan(const ServingProblem& problem, const std::vector<double>& building);

/// The same problem with one whole device to a pipeline's only pool.
ServingProblem without_pipelines(ServingProblem problem);

/// The same problem with the pipelines that the method chooses from: ppipe_np has one pool to a pipeline, and that and
/// ppipe_dart have whole devices only.
ServingProblem as_solved(ServingProblem problem, ServingMethod method);

/// Of each model, as it says, else what a plan without pipelines gives it that builds batches in no time, else what a
/// plan of the problem itself does; 0 for models that cannot be served at all.
std::vector<double> building_rates(const ServingProblem& problem);

/// With all that a plan holds of the problem, its bound included.
ServingPlan plan_of(const ServingProblem& problem, const std::vector<double>& building, const SizedPlan& sized);

}  // namespace frostpipe
