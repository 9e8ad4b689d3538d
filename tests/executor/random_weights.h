#pragma once
#include <cstdint>

#include "executor/models/layer_state.h"

namespace frostpipe::test {

/// Random weights, large enough that every part of a layer matters. They are the same in every layout; a tensor rank's
/// layer gets its part.
void randomise_layer(const TransformerConfig& config, int layer, std::uint64_t seed, LayerState& state);

}  // namespace frostpipe::test
