#pragma once
#include <string>
#include <string_view>

namespace frostpipe {

/// What a file of the envelope "frostpipe.plan" is a plan of.
enum class PlanKind {
  training,   // TrainingPlan (plan/plan.h); its files name no kind
  serving,    // ServingPlan (serving/plan/serving_plan.h)
  operators,  // OperatorPlan (operators/plan/operator_plan.h)
};

/// Throws InvalidInput if it is no plan, or of a kind that nobody knows.
PlanKind kind_of_plan(std::string_view json, std::string_view source);

std::string_view to_string(PlanKind kind);
void parse_text(std::string_view text, const std::string& place, PlanKind& kind);

}  // namespace frostpipe
