#pragma once
#include <string>

#include "plan/comparison.h"
#include "planner/embedding_freeze.h"

namespace frostpipe {

/// Says in a sentence what freezing the embedding alone would have gained in the run of that name.
WhatIf embedding_what_if(const std::string& run, const EmbeddingFreeze& found);

}  // namespace frostpipe
