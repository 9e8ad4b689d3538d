#pragma once
#include <cstdint>

#include "profiles/model.h"

namespace frostpipe {

// Sizes of a model whose tensors are divided by `shrink`, for rehearsals on one machine.

/// The embedding's table, of as many values as it has whole, divided by `shrink`; no rows: there is none.
struct ShrunkTable {
  std::int64_t rows = 0, row = 1;
};
ShrunkTable shrunk_table(const Model& model, int shrink);

/// Hidden size of shrunk activations: rounded up, at least 1.
int shrunk_hidden_size(const Model& model, int shrink);

/// Values at the beginning of the shrunk first and last layer that are tied; 0: none.
std::int64_t shrunk_tied_values(const Model& model, int shrink);

}  // namespace frostpipe
