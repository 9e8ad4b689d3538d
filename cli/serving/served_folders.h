#pragma once
#include <string>
#include <vector>

#include "serving/server/servable_model.h"

namespace frostpipe {

/// Which folders answer requests to each of the plan's models, in the plan's order: that of --model ("FOLDER",
/// "MODEL=FOLDER"), or where the plan has several heads of it those of --head ("NAME=FOLDER", "MODEL=NAME=FOLDER"), in
/// their order. Folders may hold '='; what stands before the first one is MODEL only where the plan has such a model,
/// and of --head where another '=' follows. Throws UsageError where folders are not as many as the plan has, and
/// InvalidInput where --model is for a model that it does not have.
std::vector<std::vector<HeadFolder>> served_folders(const ServingPlan& plan, const std::vector<std::string>& models,
                                                    const std::vector<std::string>& heads);

}  // namespace frostpipe
