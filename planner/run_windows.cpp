#include "planner/run_windows.h"

#include <algorithm>
#include <iterator>

namespace frostpipe {

std::vector<RunWindow> windows_of(const Model& model, int from_step, int first_trainable,
                                  const std::vector<FreezeEvent>& events, int num_steps) {
  std::vector<RunWindow> windows = {
      {.from_step = from_step, .end_step = num_steps, .first_trainable_layer = first_trainable}};
  for (const FreezeEvent& event : events) {
    const int layer = first_trainable_layer(model, event.frozen_blocks);
    if (event.from_step >= num_steps || event.from_step < from_step || layer <= windows.back().first_trainable_layer)
      continue;
    if (event.from_step == windows.back().from_step) {
      windows.back().first_trainable_layer = layer;
      continue;
    }
    windows.back().end_step = event.from_step;
    windows.push_back({.from_step = event.from_step, .end_step = num_steps, .first_trainable_layer = layer});
  }
  return windows;
}

std::vector<FreezeEvent> forecast_of(const Model& model, const PlanOptions& options) {
  return options.forecast ? *options.forecast : forecast_cap(num_blocks(model), options.num_steps, options.freeze);
}

std::vector<FreezeEvent> forecast_after(int step, const Model& model, const PlanOptions& options) {
  std::vector<FreezeEvent> events = forecast_of(model, options);
  std::erase_if(events, [&](const FreezeEvent& event) { return event.from_step <= step; });
  return events;
}

void append_until(std::vector<Phase>& phases, const std::vector<Phase>& of_window, int end_step) {
  std::copy_if(of_window.begin(), of_window.end(), std::back_inserter(phases),
               [&](const Phase& phase) { return phase.from_step < end_step; });
}

}  // namespace frostpipe
