#pragma once
#include <string>
#include <variant>
#include <vector>

#include "plan/replan.h"
#include "planner/cache_parts.h"
#include "planner/make_plan.h"

namespace frostpipe {

/// One way to go on after a freeze, with its predictions.
struct Continuation {
  std::vector<Phase> phases;          // from the request's step on
  std::vector<CachePart> parts;       // how they use the cache; empty = they do not
  Nanoseconds predicted_ns = 0;       // steps left x iteration times + transformations
};

/// What replan() looked at.
struct ReplanResult {
  Continuation chosen;
  std::vector<Continuation> candidates;  // the best of every pipeline length, without and with the cache
  std::string why_no_cache;              // empty if there was one to choose
};

/// The continuation with the smallest predicted time over the steps left (options.num_steps - from_step): one-step look-ahead, it takes it that no
/// more layers will freeze. Candidates: the current layout as it is; the best phase of the current length and of its halves, quarters, ...
/// that fit; each without the cache and with it, where partition, schedule and micro-batches of the hit part may be others than the fill part's if
/// that change pays too. `content`: what the cache holds at the request's step.
///
/// With request.measured_iteration_ns, all times of the profile are scaled by measured / predicted of the current phase first (at least 1/2, at
/// most 2): the machine as it is. Infeasible if no layout has memory enough.
std::variant<ReplanResult, Infeasible> replan(const Profile& profile, const Cluster& cluster, const PlanOptions& options,
                                              const ReplanRequest& request, const CacheContent& content);

/// All compute, update and cache times of the profile multiplied by `factor`.
Profile scaled_profile(Profile profile, double factor);

}  // namespace frostpipe
