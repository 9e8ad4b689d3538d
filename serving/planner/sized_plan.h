#pragma once
#include <variant>
#include <vector>

#include "planner/search/plan_options.h"
#include "serving/planner/pool_sizes.h"
#include "serving/planner/serving_problem.h"

// Functions that the methods of serving/planner/make_serving_plan.h share.

namespace frostpipe {

/// The candidates of every model, and the sizes of the best ones' pools.
struct SizedPlan {
  PoolProblem pools;
  PoolSizes sizes;
};

/// Returns the best sizes of the problem's pipelines. `building` is the rate at which batches are built, per model; 0
/// means that they are built in no time.
std::variant<SizedPlan, Infeasible> size_plan(const ServingProblem& problem, const std::vector<double>& building);

/// Returns the problem with pipelines of a single pool of whole devices.
ServingProblem without_pipelines(ServingProblem problem);

/// Returns the problem restricted to the pipelines of the method: ppipe_np has one pool per pipeline, and ppipe_np and
/// ppipe_dart use whole devices only.
ServingProblem as_solved(ServingProblem problem, ServingMethod method);

/// Returns each model's building rate: its own if given, else its throughput in a plan without pipelines that builds
/// batches in no time, else in a plan of the problem itself; 0 for models that cannot be served at all.
std::vector<double> building_rates(const ServingProblem& problem);

/// Returns the plan with its bound; the caller sets the method.
ServingPlan plan_of(const ServingProblem& problem, const std::vector<double>& building, const SizedPlan& sized);

}  // namespace frostpipe
