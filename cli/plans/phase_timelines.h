#pragma once
#include <vector>

#include "plan/plan.h"
#include "plan/trace.h"
#include "simulator/predict_phases.h"

namespace frostpipe {

/// Puts one iteration of each phase after the other, each below an event that names the phase.
Trace timelines_in_a_row(const TrainingPlan& plan, const std::vector<PredictedPhase>& phases);

}  // namespace frostpipe
