#pragma once
#include <string>
#include <vector>

#include "cli/plans/plan_options.h"
#include "planner/auto_plan.h"

namespace frostpipe {

/// Returns those of plan's options that restrict the layouts for which the bound holds ("--fix pp=2"). With the method
/// auto all of them do. With other methods, and with AutoZeroBubble, the bound is for the layouts that auto would
/// consider without --fix (except slices=N), --pin, --schedule and --recompute (iteration_lower_bound_ns).
std::vector<std::string> choices_of_bound(const PlanCommandOptions& options);

/// Says how far the plan's first phase is from its bound, for which choices the bound holds, or why there is no bound,
/// and shows the next best layouts.
std::string plan_answer_text(const AutoPlan& answer, const std::vector<std::string>& choices);

/// Adds "objective", "predicted_iteration_ns", "lower_bound_ns", "gap" (predicted over bound, minus 1; both are null
/// without a bound), "alternatives" and "misses" to the plan's JSON, the figures of add_model_figures, and
/// "tokens_per_second" to its phases if the model reads text.
std::string plan_answer_json(const AutoPlan& answer, const std::string& plan_json, const Profile& profile,
                             const Cluster& cluster);

}  // namespace frostpipe
