#pragma once
#include <string>
#include <vector>

#include "plan/plan.h"
#include "profiles/profile.h"
#include "simulator/predict_phases.h"

namespace frostpipe {

/// Shows a plan that has the predictions `phases`: times, ranks and memory of each phase, the length of the run and
/// the model's operations (model_text). `violations` are sentences about memory limits (limit_violations).
std::string simulation_text(const TrainingPlan& plan, const std::vector<PredictedPhase>& phases, const Profile& profile,
                            const Cluster& cluster, const std::vector<std::string>& violations);

/// Returns the same as JSON, with the envelope "frostpipe.simulation".
std::string simulation_json(const TrainingPlan& plan, const std::vector<PredictedPhase>& phases, const Profile& profile,
                            const Cluster& cluster, const std::vector<std::string>& violations);

}  // namespace frostpipe
