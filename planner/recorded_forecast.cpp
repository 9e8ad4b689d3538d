#include "planner/recorded_forecast.h"

#include <algorithm>
#include <cstdint>

namespace frostpipe {

std::vector<FreezeEvent> recorded_forecast(const TrainingPlan& recorded, const Model& model, int num_steps) {
  std::vector<FreezeEvent> events;
  for (const Phase& phase : recorded.phases) {
    const int frozen = frozen_blocks(model, phase.first_trainable_layer);
    const auto step =
        static_cast<int>(static_cast<std::int64_t>(phase.from_step) * num_steps / std::max(1, recorded.num_steps));
    if (frozen > (events.empty() ? 0 : events.back().frozen_blocks))
      events.push_back({.from_step = step, .frozen_blocks = frozen});
  }
  return events;
}

}  // namespace frostpipe
