#pragma once
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "plan/replan.h"
#include "planner/cache_parts.h"
#include "planner/search/plan_options.h"

namespace frostpipe {

/// One way to go on after a freeze, with its predictions.
struct Continuation {
  std::vector<Phase> phases;     // from the request's step to the end, as if nothing more froze
  std::vector<Phase> later;      // what is foreseen after further freezes
  std::vector<CachePart> parts;  // how `phases` use the cache; empty = they do not
  Nanoseconds predicted_ns = 0;  // of the rest of the run along the forecast: steps x iteration times + transformations
  bool operator==(const Continuation&) const = default;
};

/// What is executed where the forecast holds: `phases` until the first further freeze, then `later`. First steps
/// increase strictly.
std::vector<Phase> along_the_forecast(const Continuation& continuation);

/// What replan() looked at.
struct ReplanResult {
  Continuation chosen;
  std::vector<Continuation> candidates;  // the best that begins with the current layout and with every pipeline length,
                                         // without and with the cache; the best first
  std::string why_no_cache;              // empty if there was one to choose
};

/// Told what was considered at a freeze.
using ReplanObserver = std::function<void(const ReplanRequest&, const ReplanResult&)>;

/// The continuation with the smallest predicted time over the rest of the run, by RunPlanner along the forecast
/// (options.forecast; the cap's by options.freeze where there is none) of what freezes after the request. `content`:
/// what the cache holds at the request's step.
///
/// With request.measured_iteration_ns, all times of the profile are scaled by measured / predicted of the current phase
/// first (at least 1/2, at most 2): the machine as it is. Infeasible if no layout has memory enough.
///
/// After the last step there is nothing left to plan, but ranks that were lost there leave the others to evaluate and
/// to save with: they get the layout in which one more step would end first, without a cache.
std::variant<ReplanResult, Infeasible> replan(const PlanningProblem& problem, const ReplanRequest& request,
                                              const CacheContent& content);

/// All compute, update and cache times of the profile multiplied by `factor`.
Profile scaled_profile(Profile profile, double factor);

}  // namespace frostpipe
