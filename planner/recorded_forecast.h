#pragma once
#include <vector>

#include "plan/freeze.h"
#include "plan/plan.h"

namespace frostpipe {

/// Returns the freezes of a plan, such as that of a finished run, as the forecast of a run of `num_steps` steps: at the
/// same fractions of the run, rounded down. Phases that freeze no more than those before them are left out.
std::vector<FreezeEvent> recorded_forecast(const TrainingPlan& recorded, const Model& model, int num_steps);

}  // namespace frostpipe
