#pragma once
#include <string>

#include "plan/comparison.h"
#include "planner/embedding_freeze.h"

namespace frostpipe {

/// What freezing the embedding alone would have brought to the run of that name, in a sentence.
WhatIf embedding_what_if(const std::string& run, const EmbeddingFreeze& found);

}  // namespace frostpipe
