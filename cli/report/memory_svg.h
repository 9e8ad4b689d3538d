#pragma once
#include <optional>
#include <string>
#include <vector>

#include "plan/memory.h"

namespace frostpipe {

/// One rank's memory over one iteration of one phase.
struct MemoryCurve {
  int from_step = 0, rank = 0;
  Nanoseconds iteration_ns = 0;
  std::optional<Bytes> limit_bytes;
  std::vector<MemoryChange> changes;
};

/// A picture that stands alone: a row per curve, as steps over a common time and memory axis, with the limit in red
/// where there is one.
std::string memory_svg(const std::vector<MemoryCurve>& curves);

/// from_step,rank,at_ns,bytes,action: `bytes` hold from then on; "2F0" while it runs, "2F0 ended" after it.
std::string memory_csv(const std::vector<MemoryCurve>& curves);

/// A sentence for every rank that needs more than it has.
std::vector<std::string> what_exceeds(const std::vector<MemoryCurve>& curves);

}  // namespace frostpipe
