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

/// Returns a self-contained SVG file: a row per curve, drawn as steps, with one time axis and one scale of memory for
/// all, and the limit in red if there is one.
std::string memory_svg(const std::vector<MemoryCurve>& curves);

/// Returns a CSV file with the columns from_step,rank,at_ns,bytes,action. A rank uses `bytes` from at_ns on; the action
/// is "2F0" when 2F0 begins and "2F0 ended" when it ends.
std::string memory_csv(const std::vector<MemoryCurve>& curves);

/// Returns a sentence for every curve, that is for every rank and phase, that needs more memory than its limit.
std::vector<std::string> limit_violations(const std::vector<MemoryCurve>& curves);

}  // namespace frostpipe
