#pragma once
#include <string>
#include <vector>

#include "executor/serving/servable_model.h"

namespace frostpipe {

/// Which folders answer requests to a model of a plan: that of --model ("FOLDER", "MODEL=FOLDER"), or where the plan
/// has several heads of it those of --head ("NAME=FOLDER", "MODEL=NAME=FOLDER"), in their order. Throws UsageError
/// where they are not as many as the plan has.
std::vector<HeadFolder> served_folders(const ServedModel& planned, const std::vector<std::string>& models,
                                       const std::vector<std::string>& heads);

/// Throws InvalidInput where --model or --head is for a model that the plan does not have.
void require_planned_models(const ServingPlan& plan, const std::vector<std::string>& models,
                            const std::vector<std::string>& heads);

}  // namespace frostpipe
