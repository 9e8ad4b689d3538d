#pragma once
#include <compare>

#include "plan/action.h"

namespace frostpipe {

/// What a compute action works on: a micro-batch, or a token slice of it.
struct Part {
  int micro_batch = 0;
  int slice = 0;
  auto operator<=>(const Part&) const = default;
};

/// Of an action that has a micro-batch.
inline Part part_of(const Action& action) { return {*action.micro_batch, action.slice.value_or(0)}; }

}  // namespace frostpipe
