#pragma once
#include <vector>

#include "executor/models/folder/model_folder.h"

namespace frostpipe {

/// How many leading layers of two models of one shape have the same weights, bit by bit.
int num_shared_layers(const ModelFolder& one, const ModelFolder& other);

/// Throws InvalidInput unless each model is of the first one's shape and task, has its tokenizer (of pictures: its
/// normalisation), and shares at least its first `shared_layers` layers. Labels may differ.
void require_shared_layers(const std::vector<ModelFolder>& folders, int shared_layers);

}  // namespace frostpipe
