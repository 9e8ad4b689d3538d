#include <algorithm>

#include "plan/memory.h"

namespace frostpipe {

std::vector<MemoryChange> memory_over_time(const Trace& timeline, int rank, const RankMemory& peak,
                                           std::span<const RankMemory> stages,
                                           std::span<const std::int64_t> slice_tokens) {
  std::vector<MemoryChange> changes;
  const Bytes lasting = peak.lasting() + peak.sent_ahead;
  Bytes held = lasting;
  for (const Span& span : std::ranges::equal_range(timeline.spans, rank, {}, &Span::rank)) {
    const ActionKind kind = span.action.kind;
    if (kind == ActionKind::reduce_gradient && peak.exchange > 0) {
      changes.push_back({.at_ns = span.begin_ns, .bytes = lasting + peak.exchange, .action = span.action});
      changes.push_back({.at_ns = span.end_ns, .bytes = held, .action = span.action, .ended = true});
    }
    if (!is_compute(kind)) continue;
    const RankMemory& stage = stages[span.action.stage];
    const Bytes until_backward =
                    stage.until_backward * (slice_tokens.size() > 1 ? slice_tokens[*span.action.slice] : 1),
                key_values = span.action.slice.value_or(1) == 0 ? stage.key_values : 0;
    if (kind == ActionKind::forward) held += until_backward + key_values;
    changes.push_back({.at_ns = span.begin_ns, .bytes = held + peak.workspace, .action = span.action});
    if (kind == ActionKind::backward || kind == ActionKind::input_gradient) held -= until_backward + key_values;
    if (kind == ActionKind::input_gradient) held += stage.until_weights;
    if (kind == ActionKind::weight_gradient) held -= stage.until_weights;
    changes.push_back({.at_ns = span.end_ns, .bytes = held, .action = span.action, .ended = true});
  }
  return changes;
}

MemoryChange largest(const std::vector<MemoryChange>& changes) {
  return *std::max_element(changes.begin(), changes.end(),
                           [](const MemoryChange& a, const MemoryChange& b) { return a.bytes < b.bytes; });
}

}  // namespace frostpipe
