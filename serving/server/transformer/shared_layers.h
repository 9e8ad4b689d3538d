#pragma once
#include <vector>

#include "executor/models/folder/model_folder.h"

namespace frostpipe {

/// Throws InvalidInput unless each model is of the first one's shape and task, has its tokenizer (of pictures: its
/// normalisation), and shares at least its first `shared_layers` layers: the same weights, bit by bit. Labels may
/// differ. Where they share fewer, it says how many all of them do.
void require_shared_layers(const std::vector<ModelFolder>& folders, int shared_layers);

}  // namespace frostpipe
