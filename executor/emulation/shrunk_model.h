#pragma once
#include <cstdint>

#include "profiles/model.h"

namespace frostpipe {

// Sizes of a model whose tensors are divided by `shrink`, for a rehearsal on one machine.

/// The embedding table with its number of values divided by `shrink`; `rows` is 0 if the model has none.
struct ShrunkTable {
  std::int64_t rows = 0, row = 1;
};
ShrunkTable shrunk_table(const Model& model, int shrink);

/// Returns the hidden size of shrunk activations, rounded up, at least 1.
int shrunk_hidden_size(const Model& model, int shrink);

/// Returns the number of tied values at the beginning of the shrunk first and last layer; 0 if none are tied.
std::int64_t shrunk_tied_values(const Model& model, int shrink);

}  // namespace frostpipe
