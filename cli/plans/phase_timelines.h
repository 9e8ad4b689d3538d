#pragma once
#include <vector>

#include "plan/plan.h"
#include "plan/trace.h"
#include "simulator/predict_phases.h"

namespace frostpipe {

/// One iteration of each phase, one after the other, each under an event that names the phase.
Trace timelines_in_a_row(const TrainingPlan& plan, const std::vector<PredictedPhase>& phases);

}  // namespace frostpipe
