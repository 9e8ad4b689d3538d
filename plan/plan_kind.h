#pragma once
#include <string>
#include <string_view>

namespace frostpipe {

/// The kinds of plans with the envelope "frostpipe.plan".
enum class PlanKind {
  training,   // TrainingPlan (plan/plan.h); its files have no field "kind"
  serving,    // ServingPlan (serving/plan/serving_plan.h)
  operators,  // OperatorPlan (operators/plan/operator_plan.h)
};

/// Returns the kind of a plan file. Throws InvalidInput if the file is no plan, or of an unknown kind.
PlanKind kind_of_plan(std::string_view json, std::string_view source);

std::string_view to_string(PlanKind kind);
void parse_text(std::string_view text, const std::string& place, PlanKind& kind);

}  // namespace frostpipe
