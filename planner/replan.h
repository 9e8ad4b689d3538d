#pragma once
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "plan/replan.h"
#include "planner/cache_parts.h"
#include "planner/search/plan_options.h"

namespace frostpipe {

/// One way to continue after a freeze, with its predictions.
struct Continuation {
  std::vector<Phase> phases;     // from the request's step to the end of the run, as if nothing more froze
  std::vector<Phase> later;      // phases after further forecast freezes
  std::vector<CachePart> parts;  // how `phases` use the cache; empty = not at all
  Nanoseconds predicted_ns = 0;  // rest of the run along the forecast: steps x iteration times + transformations
  bool operator==(const Continuation&) const = default;
};

/// Returns the phases of a run along the forecast: `phases` until the next freeze, then `later`. First steps increase
/// strictly.
std::vector<Phase> forecast_phases(const Continuation& continuation);

/// The alternatives that replan() compared.
struct ReplanResult {
  Continuation chosen;
  std::vector<Continuation> candidates;  // the best with the current layout and with every pipeline length, each
                                         // without and with the cache; the best first
  std::string why_no_cache;              // empty if there was a cache to choose
};

/// A function that is called with the alternatives at a freeze.
using ReplanObserver = std::function<void(const ReplanRequest&, const ReplanResult&)>;

/// Returns the continuation with the least predicted time over the rest of the run, by RunPlanner along the forecast of
/// the freezes after the request (request.forecast, else options.forecast, else the cap's by options.freeze). `content`
/// is the content of the cache at the request's step.
///
/// With request.measured_iteration_ns, all times of the profile are first scaled by the ratio measured / predicted of
/// the current phase's iteration (limited to between 1/2 and 2), to match the machine as it is. Returns Infeasible if
/// no layout fits into memory.
///
/// After the last step there is nothing left to plan, but if ranks are lost there, the others still have to evaluate
/// and save: they get the layout in which one more step would end first, without a cache.
std::variant<ReplanResult, Infeasible> replan(const PlanningProblem& problem, const ReplanRequest& request,
                                              const CacheContent& content);

/// Multiplies all compute, update and cache times of the profile by `factor`.
Profile scaled_profile(Profile profile, double factor);

}  // namespace frostpipe
