#include <algorithm>

#include "plan/memory.h"

namespace frostpipe {

std::vector<MemoryChange> memory_over_time(const Trace& timeline, int rank, const RankMemory& peak,
                                           double peak_in_flight, bool trains) {
  const Bytes of_micro_batch =
      peak_in_flight > 0 ? static_cast<Bytes>(static_cast<double>(peak.saved_activations) / peak_in_flight) : 0;
  std::vector<MemoryChange> changes;
  int in_flight = 0;
  for (const Span& span : timeline.spans) {
    if (span.rank != rank) continue;
    if (span.action.kind == ActionKind::reduce_gradient && peak.exchange > 0) {
      changes.push_back({.at_ns = span.begin_ns, .bytes = peak.lasting() + peak.exchange, .action = span.action});
      changes.push_back({.at_ns = span.end_ns, .bytes = peak.lasting(), .action = span.action, .ended = true});
    }
    if (!is_compute(span.action.kind)) continue;
    in_flight += trains && span.action.kind == ActionKind::forward;
    changes.push_back({.at_ns = span.begin_ns,
                       .bytes = peak.lasting() + in_flight * of_micro_batch + peak.workspace,
                       .action = span.action});
    in_flight -= span.action.kind == ActionKind::backward || span.action.kind == ActionKind::weight_gradient;
    changes.push_back({.at_ns = span.end_ns,
                       .bytes = peak.lasting() + in_flight * of_micro_batch,
                       .action = span.action,
                       .ended = true});
  }
  return changes;
}

MemoryChange largest(const std::vector<MemoryChange>& changes) {
  return *std::max_element(changes.begin(), changes.end(),
                           [](const MemoryChange& a, const MemoryChange& b) { return a.bytes < b.bytes; });
}

}  // namespace frostpipe
