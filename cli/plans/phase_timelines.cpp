#include "cli/plans/phase_timelines.h"

#include <fmt/format.h>

#include <algorithm>

namespace frostpipe {

Trace timelines_in_a_row(const TrainingPlan& plan, const std::vector<PredictedPhase>& phases) {
  Trace all{.num_ranks = plan.world_size, .spans = {}, .events = {}};
  Nanoseconds offset = 0;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    Nanoseconds end = offset;
    for (Span span : phases[i].simulated.timeline.spans) {
      span.step = plan.phases[i].from_step;
      span.begin_ns += offset;
      span.end_ns += offset;
      end = std::max(end, span.end_ns);
      all.spans.push_back(span);
    }
    all.events.push_back({0, fmt::format("phase from step {}", plan.phases[i].from_step), offset, end});
    offset = end + (end - offset) / 20;  // a gap between the phases
  }
  return all;
}

}  // namespace frostpipe
