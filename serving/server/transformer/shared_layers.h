#pragma once
#include <vector>

#include "executor/models/folder/model_folder.h"

namespace frostpipe {

/// Throws InvalidInput unless all models have the shape, task and tokenizer (for pictures: normalisation) of the first
/// one, and their first `shared_layers` layers have bitwise equal weights. Labels may differ. If fewer layers are
/// equal, the message says how many.
void require_shared_layers(const std::vector<ModelFolder>& folders, int shared_layers);

}  // namespace frostpipe
