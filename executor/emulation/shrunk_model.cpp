#include "executor/emulation/shrunk_model.h"

#include <algorithm>

namespace frostpipe {

ShrunkTable shrunk_table(const Model& model, int shrink) {
  const std::int64_t row = std::max(1, model.hidden_size / shrink);
  return {.rows = model.vocab_size * model.hidden_size / shrink / row, .row = row};
}

std::int64_t shrunk_tied_values(const Model& model, int shrink) {
  const ShrunkTable table = shrunk_table(model, shrink);
  return model.tied_parameter_count > 0 ? table.rows * table.row : 0;
}

int shrunk_hidden_size(const Model& model, int shrink) {
  return std::max(1, (model.hidden_size + shrink - 1) / shrink);
}

}  // namespace frostpipe
