#pragma once
#include <string>
#include <vector>

#include "serving/server/servable_model.h"

namespace frostpipe {

/// Returns the folders that answer requests to each of the plan's models, in the plan's order. They come from --model:
/// "FOLDER" or "MODEL=FOLDER"; for a model with several heads "NAME=FOLDER" or "MODEL=NAME=FOLDER" for each head, in
/// their order. Folders may hold '='. The text before the first '=' is MODEL only if the plan has such a model and, if
/// this has heads, another '=' follows. Throws UsageError unless there are as many folders as the plan needs, and
/// InvalidInput for a model that the plan does not have.
std::vector<std::vector<HeadFolder>> served_folders(const ServingPlan& plan, const std::vector<std::string>& models);

}  // namespace frostpipe
